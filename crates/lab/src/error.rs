//! What can go wrong in the lab itself, as against in a candidate.

use gauntlet_problem::ProblemError;

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
    /// A problem's operands or results are malformed.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// Measurements that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
}
