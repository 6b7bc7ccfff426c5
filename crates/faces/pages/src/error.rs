//! Why there is no page.

use std::path::PathBuf;

use gauntlet_judge::ledger::LedgerError;
use gauntlet_queue::QueueError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// What the page is about does not exist.
    #[error("{0}")]
    Unknown(String),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The queue cannot be read.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
