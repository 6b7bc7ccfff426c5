//! What can go wrong in the lab itself, as against in a candidate.

use std::path::PathBuf;
use std::time::Duration;

use gauntlet_executor::WorkerError;
use gauntlet_problem::{InputsError, StorageError};

use thiserror::Error;

use crate::ledger::LedgerError;
use crate::source::FileError;

/// Trouble of the lab's own. A candidate's trouble is a [`Finding`](crate::Finding).
#[derive(Debug, Error)]
pub enum LabError {
    /// A file is malformed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The ledger cannot be written or read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Operands or results could not be written or read.
    #[error("{what}: {source}; check that the disk of {place} has room and can be written")]
    Files {
        /// What was tried.
        what: String,
        /// Where.
        place: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// What lies in a result's place is none.
    #[error("{path} is no file of {bytes} bytes and their names; a worker writes the result there itself")]
    NoResult {
        /// The place.
        path: PathBuf,
        /// Bytes of a result of this problem.
        bytes: usize,
    },
    /// What lies in a timeline's place is none.
    #[error("{path} is no timeline: {why}; a worker writes it there itself")]
    NoTimeline {
        /// The place.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of operands or results cannot be written or read.
    #[error("{0}; check the file, and that its disk has room and can be written")]
    Storage(#[from] StorageError),
    /// Operands do not fit their problem.
    #[error(transparent)]
    Inputs(#[from] InputsError),
    /// Nothing serves the CUDA executor.
    #[error("nothing serves the cuda executor here; `gauntlet doctor` says what is missing")]
    NoExecutor,
    /// Nothing to compare with.
    #[error("no baseline for {case}: {rule}; give one that keeps the rule")]
    NoBaseline {
        /// The case.
        case: String,
        /// The rule that the baseline breaks.
        rule: String,
    },
    /// Tuning has too little time to decide anything.
    #[error(
        "a budget of {budget:.0?} is too short to decide anything: {why}; give about {needed:.0?}, or tune fewer cases"
    )]
    ShortBudget {
        /// What was given.
        budget: Duration,
        /// What it would take.
        needed: Duration,
        /// What that estimate rests on.
        why: String,
    },
    /// The model lacks a figure of the device.
    #[error(transparent)]
    MissingFigure(#[from] gauntlet_model::MissingFigure),
    /// A worker that is nobody's candidate failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A worker of the executor failed before it was told what to run, as it would whatever that is.
    #[error(
        "no worker of the executor can serve, so nothing can be run: {0}; `gauntlet doctor` tells what is missing, and \
         workers obey GAUNTLET_SIMD, GAUNTLET_THREADS and GAUNTLET_GPU where the environment sets them"
    )]
    Executor(#[source] WorkerError),
    /// Measurements that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
}
