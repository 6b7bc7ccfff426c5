//! Runs candidates: the worker protocol, workers as processes, and recorded times.
//!
//! A worker is a process that answers each JSON request line on standard input with one JSON line on standard output
//! ([`protocol`]). [`serve`] is the worker's side, [`WorkerProcess`] the coordinator's. A crash, a hang or an exceeded
//! limit ends one worker and reaches the caller as a [`WorkerError`] with the end of the worker's standard error.
//! [`safeguards`] lists how workers are confined on this system. [`Trusted`] is a program of the user's own, which is not confined.
//!
//! ```
//! use gauntlet_worker::protocol::{Envelope, Reply, Request};
//!
//! let line = serde_json::to_string(&Envelope { id: 1, request: Request::Describe })?;
//! assert_eq!(line, r#"{"id":1,"call":"describe"}"#);
//! let answered = r#"{"id":1,"error":{"kind":"refused","message":"there is no GPU"}}"#;
//! assert_eq!(serde_json::from_str::<Reply>(answered)?.id, 1);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod artefacts;
mod census;
mod children;
mod confined;
mod confinement;
mod descriptors;
mod environment;
mod error;
mod heat;
mod held;
mod launch;
mod leader;
mod limits;
mod memory;
mod operand;
mod pipes;
#[cfg(target_os = "linux")]
mod placement;
mod process;
mod program;
pub mod protocol;
mod record;
mod service;
mod timeouts;
mod trusted;
mod watch;

pub use artefacts::Artefacts;
pub use census::Census;
pub use children::end_all_workers;
pub use confined::{Confined, Silence};
pub use confinement::{Allowances, Culprits, Measure, Safeguard, Standing, culprits, safeguards};
pub use descriptors::send;
pub use environment::give_to_workers;
pub use error::WorkerError;
pub use gauntlet_calls::Turns;
pub use heat::{Heat, Load};
pub use held::{Call, Stepped, probe};
pub use launch::WorkerCommand;
pub use limits::Limits;
pub use operand::Operand;
#[cfg(target_os = "linux")]
pub use placement::Placement;
pub use process::{WorkerProcess, most_calls};
pub use program::Program;
pub use record::{
    CandidateRecord, Record, RecordError, RecordedCompilation, RecordedCorrectness, Uncertainty,
};
pub use service::{Calls, Service, Steps, serve};
pub use timeouts::Timeouts;
pub use trusted::{Ended, Trusted};
