//! Errors that end a tournament.

use gauntlet_judge::JudgeError;
use gauntlet_judge::ledger::LedgerError;
use thiserror::Error;

use gauntlet_entrants::{EntrantError, FileError};

/// Why a tournament cannot be played.
#[derive(Debug, Error)]
pub enum TournamentError {
    /// A file is malformed, or what it names is not there.
    #[error(transparent)]
    Entrant(Box<EntrantError>),
    /// The ledger cannot be written or read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no place to build sources.
    #[error("no temporary folder can be made: {0}")]
    NoFolder(std::io::Error),
    /// A run that is replayed lacks a record.
    #[error(
        "the replayed run holds no record of {what} in the round {round}: it was cut short, or made by another version; \
         `gauntlet run --resume` goes on with a run that was cut short"
    )]
    NotRecorded {
        /// What is missing.
        what: String,
        /// Where.
        round: String,
    },
    /// Candidates cannot be examined where they should be.
    #[error("{0}")]
    Elsewhere(String),
    /// The judge failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
}

impl From<EntrantError> for TournamentError {
    fn from(error: EntrantError) -> Self {
        Self::Entrant(Box::new(error))
    }
}

impl From<FileError> for TournamentError {
    fn from(error: FileError) -> Self {
        EntrantError::from(error).into()
    }
}
