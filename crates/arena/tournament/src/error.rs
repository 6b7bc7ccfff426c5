//! Errors that end a tournament.

use gauntlet_judge::JudgeError;
use gauntlet_judge::ledger::LedgerError;
use thiserror::Error;

use gauntlet_entrants::FileError;

/// Why a tournament cannot be played.
#[derive(Debug, Error)]
pub enum TournamentError {
    /// A file is malformed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The ledger cannot be written or read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no place to build sources.
    #[error("no temporary folder can be made: {0}")]
    NoFolder(std::io::Error),
    /// The judge failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
}
