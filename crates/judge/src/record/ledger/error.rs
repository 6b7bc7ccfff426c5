//! What can go wrong with a ledger: each text says which file, what happened, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use super::record::RunId;

/// Why a ledger could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The folder or the file could not be made.
    #[error(
        "cannot create the ledger {}: {source}; give a place that can be written with --ledger",
        path.display()
    )]
    Create {
        /// The ledger as it was named.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// Opened for reading, but there is no such file.
    #[error(
        "there is no ledger at {}; name an existing one with --ledger, or make it by running a round",
        path.display()
    )]
    Missing {
        /// The ledger as it was named.
        path: PathBuf,
    },

    /// The operating system does not let the file be read.
    #[error("cannot read the ledger {}: {source}; make it readable or give another with --ledger", path.display())]
    Unreadable {
        /// The ledger as it was named.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The file is something else; it was left as it is.
    #[error(
        "{} is not a gauntlet ledger: {found}; it was left as it is, give another file with --ledger",
        path.display()
    )]
    NotALedger {
        /// The file as it was named.
        path: PathBuf,
        /// What the file is instead.
        found: String,
    },

    /// A newer program wrote the file; it was left as it is.
    #[error(
        "the ledger {} has schema {found}, this gauntlet knows schemas up to {known}; it was left as it is, \
         use a newer gauntlet or give another ledger with --ledger",
        path.display()
    )]
    Newer {
        /// The ledger as it was named.
        path: PathBuf,
        /// Schema version of the file.
        found: i32,
        /// Newest schema version that this program knows.
        known: i32,
    },

    /// The file or its folder cannot be written.
    #[error(
        "the ledger {} cannot be written: the file or its folder is read-only; make both writable (the journal \
         lies beside the file) or give another ledger with --ledger",
        path.display()
    )]
    ReadOnly {
        /// The ledger as it was named.
        path: PathBuf,
    },

    /// No room on the disk.
    #[error(
        "no room for the ledger {}: the disk is full; what was recorded before is safe, free some space and \
         resume, or give a ledger on another disk with --ledger",
        path.display()
    )]
    Full {
        /// The ledger as it was named.
        path: PathBuf,
    },

    /// Another program held the file for longer than the ledger waits.
    #[error(
        "the ledger {} stayed locked by another program; end that program, or wait for it and try again",
        path.display()
    )]
    Locked {
        /// The ledger as it was named.
        path: PathBuf,
    },

    /// The file is a ledger, but what is in it makes no sense.
    #[error("the ledger {} is damaged: {detail}; restore a copy, or start another with --ledger", path.display())]
    Damaged {
        /// The ledger as it was named.
        path: PathBuf,
        /// What makes no sense.
        detail: String,
    },

    /// A record or a question names a run that is not there.
    #[error("the ledger {} has no run {run}; `gauntlet ledger list` shows those it has", path.display())]
    UnknownRun {
        /// The ledger as it was named.
        path: PathBuf,
        /// The run asked for.
        run: RunId,
    },

    /// A record was appended to a run that had ended: the run must stay as it was when it ended.
    #[error("run {run} of the ledger {} has ended and takes no more records; start another run", path.display())]
    Ended {
        /// The ledger as it was named.
        path: PathBuf,
        /// The run that has ended.
        run: RunId,
    },

    /// A run was to be started a second time.
    #[error("run {run} of the ledger {} has started already; continue it or start another run", path.display())]
    Started {
        /// The ledger as it was named.
        path: PathBuf,
        /// The run that has started.
        run: RunId,
    },

    /// The export could not be written to where it goes.
    #[error("cannot write the export of the ledger: {source}; give it a place that can be written")]
    Export {
        /// What the writer said.
        source: io::Error,
    },

    /// Anything else that SQLite reports, an error of the disk for example.
    #[error(
        "the ledger {} failed: {source}; check the disk it is on, or give another ledger with --ledger",
        path.display()
    )]
    Storage {
        /// The ledger as it was named.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl LedgerError {
    /// Says what an error of SQLite means for the ledger at `path`.
    pub(super) fn of_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match &source {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => Self::Full { path },
                // Growing the index of the journal fails with this code when the disk is full.
                ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => {
                    Self::Full { path }
                }
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked { path },
                // A journal that cannot be made beside the file is reported as "cannot open".
                ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                    Self::ReadOnly { path }
                }
                ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => Self::Damaged {
                    path,
                    detail: source.to_string(),
                },
                _ => Self::Storage { path, source },
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => Self::Damaged {
                path,
                detail: source.to_string(),
            },
            _ => Self::Storage { path, source },
        }
    }

    /// Says what an error of the operating system while creating the ledger at `path` means.
    pub(super) fn of_creation(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Create { path, source },
        }
    }
}
