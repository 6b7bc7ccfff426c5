//! What runs a candidate: the worker protocol, workers as processes, and recorded times.
//!
//! A worker is a process that answers one JSON object a line on standard output for each request on standard
//! input ([`protocol`]). [`serve`] is the worker's side, [`WorkerProcess`] the coordinator's. A crash, a hang or taking
//! too much ends one worker and reaches the caller as a [`WorkerError`] with the worker's last words. What holds a
//! worker in its place on this system, [`safeguards`] tells.

mod census;
mod confinement;
mod launch;
mod limits;
mod living;
mod patience;
mod pipes;
mod process;
pub mod protocol;
mod record;
mod service;
mod trouble;
mod watch;

pub use census::Census;
pub use confinement::{Allowances, Culprits, Measure, Safeguard, Standing, culprits, safeguards};
pub use launch::WorkerCommand;
pub use limits::Limits;
pub use living::end_all_workers;
pub use patience::Patience;
pub use process::WorkerProcess;
pub use record::{
    CandidateRecord, Record, RecordError, RecordedCompilation, RecordedCorrectness, Uncertainty,
};
pub use service::{Calls, Service, serve};
pub use trouble::WorkerError;
