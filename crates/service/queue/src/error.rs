//! Errors of tickets, queues and jobs.

use std::io;
use std::path::PathBuf;

/// Why a ticket could not be queued, read or run.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// A file or folder of the queue cannot be read or written.
    #[error("{}: {source}; check that the folder exists and can be written, and that the disk has room", path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The database of the queue.
    #[error("the queue {} cannot be used: {source}; if it is damaged, move it away: results stay in their folder", path.display())]
    Storage {
        /// The database.
        path: PathBuf,
        /// What went wrong.
        source: rusqlite::Error,
    },
    /// A ticket's file is no ticket.
    #[error("{}: this is no ticket: {why}; `gauntlet schema ticket-file` describes one", path.display())]
    NoTicket {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such ticket.
    #[error("there is no ticket `{0}`; `gauntlet queue list`, or `history` of an agent, lists the tickets")]
    UnknownTicket(String),
    /// A judgement's words are wrong.
    #[error("{0}")]
    Judgement(String),
    /// The contents that a digest names are not there, or are others.
    #[error("the contents {digest} of {name} are not in {}; queue the ticket again", folder.display())]
    NoBlob {
        /// The digest.
        digest: String,
        /// The file's name in the ticket.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A key was used before for something else.
    #[error("the key `{0}` belongs to another judgement; give each judgement a key of its own")]
    KeyTaken(String),
    /// A client has too many tickets that wait.
    #[error("{waiting} tickets of {client} wait already; ask for their verdicts, or cancel some")]
    Full {
        /// The client.
        client: String,
        /// How many wait.
        waiting: usize,
    },
}

impl QueueError {
    /// Turns an error of the file system into one that names the place.
    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Files { path, source }
    }
}
