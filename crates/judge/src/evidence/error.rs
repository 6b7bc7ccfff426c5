//! What can go wrong in the judge itself, as against in a candidate.

use std::path::PathBuf;

use gauntlet_formats::TensorFileError;
use gauntlet_worker::WorkerError;

use thiserror::Error;

/// A failure of the judge itself. What is wrong with a candidate is a [`Finding`](crate::Finding).
#[derive(Debug, Error)]
pub enum JudgeError {
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
    Storage(#[from] TensorFileError),
    /// Operands do not fit their case.
    #[error("{0}")]
    Inputs(String),
    /// Nothing serves the CUDA executor.
    #[error("nothing serves the cuda executor here; `gauntlet doctor` says what is missing")]
    NoExecutor,
    /// The model lacks a figure of the device, or knows no kernel of the task.
    #[error(transparent)]
    NoEstimate(#[from] gauntlet_simulate::NoEstimate),
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
