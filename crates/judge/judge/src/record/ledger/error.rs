//! Errors of a ledger: each text says which file, what happened, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

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
        /// The ledger's path as given.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },

    /// Opened for reading, but there is no such file.
    #[error(
        "there is no ledger at {}; name an existing one with --ledger, or make it: every command that judges does",
        path.display()
    )]
    Missing {
        /// The ledger's path as given.
        path: PathBuf,
    },

    /// The operating system refuses to read the file.
    #[error("cannot read the ledger {}: {source}; make it readable or give another with --ledger", path.display())]
    Unreadable {
        /// The ledger's path as given.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },

    /// The file is not a ledger; it was left unchanged.
    #[error(
        "{} is not a gauntlet ledger: {found}; it was left as it is, give another file with --ledger",
        path.display()
    )]
    NotALedger {
        /// The file's path as given.
        path: PathBuf,
        /// The actual kind of the file.
        found: String,
    },

    /// A newer program wrote the file; it was left unchanged.
    #[error(
        "the ledger {} has schema {found}, this gauntlet knows schemas up to {known}; it was left as it is, \
         use a newer gauntlet or give another ledger with --ledger",
        path.display()
    )]
    Newer {
        /// The ledger's path as given.
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
        /// The ledger's path as given.
        path: PathBuf,
    },

    /// No room on the disk.
    #[error(
        "no room for the ledger {}: the disk is full, or the file at the limit of sizes (`ulimit -f`); what was recorded before is \
         safe, free some space or raise the limit and resume, or give a ledger on another disk with --ledger",
        path.display()
    )]
    Full {
        /// The ledger's path as given.
        path: PathBuf,
    },

    /// Another program locked the file for longer than the timeout.
    #[error(
        "the ledger {} stayed locked by another program; end that program, or wait for it and try again",
        path.display()
    )]
    Locked {
        /// The ledger's path as given.
        path: PathBuf,
    },

    /// The file is a ledger, but its content is inconsistent.
    #[error("the ledger {} is damaged: {detail}; restore a copy, or start another with --ledger", path.display())]
    Damaged {
        /// The ledger's path as given.
        path: PathBuf,
        /// The inconsistency.
        detail: String,
    },

    /// A record or a query names a run that does not exist.
    #[error("the ledger {} has no run {run}; `gauntlet ledger list` shows those it has", path.display())]
    UnknownRun {
        /// The ledger's path as given.
        path: PathBuf,
        /// The run.
        run: RunId,
    },

    /// A record was appended to a run that had ended: the run must stay as it was when it ended.
    #[error("run {run} of the ledger {} has ended and takes no more records; start another run", path.display())]
    Ended {
        /// The ledger's path as given.
        path: PathBuf,
        /// The run that has ended.
        run: RunId,
    },

    /// A run was to be started a second time.
    #[error("run {run} of the ledger {} has started already; continue it or start another run", path.display())]
    Started {
        /// The ledger's path as given.
        path: PathBuf,
        /// The run that was already started.
        run: RunId,
    },

    /// A ledger was to be imported, and it and this one went on apart from a common beginning.
    #[error(
        "{} and the ledger {} have a common beginning, and differ from record {sequence} on: one began as a copy of the \
         other, so that their records cannot be told apart; begin each machine's ledger anew",
        other.display(), path.display()
    )]
    Forked {
        /// The ledger's path as given.
        path: PathBuf,
        /// The other ledger's path as given.
        other: PathBuf,
        /// The first record that differs.
        sequence: u64,
    },

    /// The export could not be written to its destination.
    #[error("cannot write the export of the ledger: {source}; give it a place that can be written")]
    Export {
        /// The writer's error.
        source: io::Error,
    },

    /// Any other SQLite error, for example a disk error.
    #[error(
        "the ledger {} failed: {source}; check the disk it is on, or give another ledger with --ledger",
        path.display()
    )]
    Storage {
        /// The ledger's path as given.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl LedgerError {
    /// Converts a SQLite error for the ledger at `path`.
    pub(super) fn of_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match &source {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => Self::Full { path },
                // Growing the index of the journal fails with this code when the disk is full.
                ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => {
                    Self::Full { path }
                }
                // SQLite does not tell the limit of sizes from other failures to write.
                ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_WRITE && is_limited() => {
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

    /// Converts an operating system error from creating the ledger at `path`.
    pub(super) fn of_creation(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path }
            }
            _ => Self::Create { path, source },
        }
    }
}

/// Whether files have a limit of sizes.
fn is_limited() -> bool {
    getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(limit, _)| limit != RLIM_INFINITY)
}
