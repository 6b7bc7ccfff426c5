//! Tasks in Python: one file with `cases`, `generate` and `reference`, and the formats of others, taken as they are.
//!
//! [`open`] describes what lies at a path, starts the reference process, and returns the [`Suite`](gauntlet_task::Suite)
//! of its cases. The process alone knows the seeds and the expected results, and no kernel shares it; it is confined all the same. It
//! runs the user's `generate`, `reference` and `check`, and exchanges tensors through files in memory, which workers cannot
//! reach. Its program is in
//! `python/gauntlet/_host`, and the binary carries it.
//!
//! | path | kind |
//! |---|---|
//! | `softmax.py`, a folder with `task.py` and possibly `task.toml` | `cases`, `generate(…, seed)`, `reference(…)`; optionally `tolerance`, `check`, `work`, `constant`, `outputs`, `deterministic`, `accepts` |
//! | a folder with `task.yml` | a task of GPU MODE's competitions |
//! | a file with `class Model` and `get_inputs` | a problem of KernelBench |
//! | `definition.json` with `workload.jsonl` | FlashInfer-Trace, SOL-ExecBench |
//!
//! What is not honoured is in the suite's notes.
//!
//! ```no_run
//! use gauntlet_python_task::{Options, is_task, open};
//!
//! let path = std::path::Path::new("softmax.py");
//! assert!(is_task(path));
//! let suite = open(path, &Options::default())?;
//! for case in suite.cases() {
//!     println!("{}: {}", case.name, case.sizes);
//! }
//! # Ok::<(), gauntlet_python_task::TaskError>(())
//! ```

mod conduct;
mod dependences;
mod description;
mod error;
mod memory;
mod noticed;
mod process;
mod protocol;
mod results;
mod rules;
mod second_look;
mod sizes;
mod task;

pub use description::{TaskToml, is_task};
pub use error::TaskError;
pub use sizes::PythonSizes;
pub use task::{Options, PythonTask, open};
