//! What runs a candidate: the worker protocol, workers as processes, and recorded times.
//!
//! A worker is a process that answers one JSON object a line on standard output for each request on standard
//! input ([`protocol`]). [`serve`] is the worker's side, [`WorkerProcess`] the coordinator's. A crash or a hang
//! ends one worker and reaches the caller as a [`WorkerError`] with the worker's last words.

mod census;
mod living;
mod process;
pub mod protocol;
mod record;
mod service;
mod trouble;

pub use census::Census;
pub use living::end_all_workers;
pub use process::{Patience, WorkerCommand, WorkerProcess};
pub use record::{
    CandidateRecord, Record, RecordError, RecordedCompilation, RecordedCorrectness, Uncertainty,
};
pub use service::{Service, serve};
pub use trouble::WorkerError;
