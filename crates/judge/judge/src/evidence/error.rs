//! Errors of the judge itself, as opposed to failures of a candidate.

use std::path::PathBuf;

use gauntlet_tensors::TensorFileError;
use gauntlet_worker::WorkerError;

use thiserror::Error;

/// An error of the judge itself. Failures of a candidate are [`Finding`](crate::Finding)s.
#[derive(Debug, Error)]
pub enum JudgeError {
    /// Operands or results could not be written or read.
    #[error("{what}: {source}; check that the disk of {place} has room and can be written")]
    Files {
        /// The operation that failed.
        what: String,
        /// The path.
        place: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file at a result's path is not a valid result.
    #[error("{path} is no file of {bytes} bytes and their names; a worker writes the result there itself")]
    NoResult {
        /// The path.
        path: PathBuf,
        /// The size in bytes of a valid result of this problem.
        bytes: usize,
    },
    /// The file at a timeline's path is not a valid timeline.
    #[error("{path} is no timeline: {why}; a worker writes it there itself")]
    NoTimeline {
        /// The path.
        path: PathBuf,
        /// The error in it.
        why: String,
    },
    /// A file of operands or results cannot be written or read.
    #[error("{0}; check the file, and that its disk has room and can be written")]
    Storage(#[from] TensorFileError),
    /// Operands do not fit their case.
    #[error("{0}")]
    Inputs(String),
    /// No program serves the CUDA executor.
    #[error("nothing serves the cuda executor here; `gauntlet doctor` says what is missing")]
    NoExecutor,
    /// A worker that runs no candidate failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A worker of the executor failed before it received any schedule, so it would fail for every candidate.
    #[error(
        "no worker of the executor can serve, so nothing can be run: {0}; `gauntlet doctor` tells what is missing, and \
         workers obey GAUNTLET_SIMD, GAUNTLET_THREADS and GAUNTLET_GPU where the environment sets them"
    )]
    Executor(#[source] WorkerError),
    /// What was kept of a comparison does not fit it.
    #[error("the observations kept in the result do not match its cases and pairs; make a new comparison")]
    Observations,
    /// Measurements that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
}
