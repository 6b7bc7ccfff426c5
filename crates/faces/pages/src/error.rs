//! Why there is no page.

use std::path::PathBuf;

use gauntlet_judge::ledger::LedgerError;
use gauntlet_queue::QueueError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// What a page is about cannot be shown.
    #[error("{0}")]
    Unknown(String),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The queue cannot be read.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
