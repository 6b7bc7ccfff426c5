//! Tasks and kernels by the names that people give them, on a command line or in a file.
//!
//! A task's name becomes a suite ([`find_task`]); a kernel's text, which `gauntlet_judge::KernelText` has parsed, becomes a
//! candidate ([`candidate`]). Kernels in files become the command of one of this program's own workers, so that the judge
//! knows commands only. [`Source`] is a TOML file with its text, so that errors point into it.
//!
//! ```
//! use gauntlet_entrants::find_task;
//!
//! assert_eq!(find_task("rms-norm").unwrap().name, "rms-norm");
//! assert!(find_task("rms-nrom").unwrap_err().to_string().contains("rms-nrom"));
//! ```

mod error;
mod files;
mod kernel;
mod own;
mod parameters;
mod source;
mod task;

pub use error::EntrantError;
pub use files::{digest_of_program, digests, digests_of, task_files};
pub use kernel::{candidate, existing, no_task, notes_of_solutions, read, with_parameters};
pub use own::{check_given, kernel_file, own_parameters};
pub use parameters::{changed_parameters, read_parameters};
pub use source::{FileError, Source};
pub use task::{find_task, find_task_with, tensors_of};
