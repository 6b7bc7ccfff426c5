//! The file of a ledger: created atomically, and identified before anything is changed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::error::LedgerError;

/// Version of the schema in `schema.sql` and `imports.sql`, kept as SQLite's `user_version`.
pub(super) const SCHEMA: i32 = 3;

/// The first schema. The second has one more kind of record, the third two more and records of other ledgers.
const FIRST: i32 = 1;

/// What the third schema adds.
const IMPORTS: &str = include_str!("imports.sql");

/// "GNTL", kept as SQLite's `application_id`: distinguishes a ledger from other SQLite files.
const APPLICATION: i32 = i32::from_be_bytes(*b"GNTL");

/// Length of the header of an SQLite file; offsets below: <https://www.sqlite.org/fileformat.html#the_database_header>.
const HEADER: usize = 100;

/// Creates an empty ledger at `path`, with its folder. An existing ledger, or one that another program creates
/// meanwhile, is left unchanged.
///
/// The file is written under another name and moved into place, so that no program ever sees a partial ledger and two
/// programs may create the same ledger at the same time.
pub(super) fn create_if_missing(path: &Path) -> Result<(), LedgerError> {
    if path.exists() {
        return Ok(());
    }
    let refused = |source| LedgerError::of_creation(path, source);
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(refused)?;
    let workshop = tempfile::Builder::new()
        .prefix(".gauntlet-ledger-")
        .tempdir_in(folder)
        .map_err(refused)?;
    let draft = workshop.path().join("draft");
    write_empty(&draft).map_err(|error| LedgerError::of_sqlite(path, error))?;
    let moved = tempfile::TempPath::try_from_path(&draft)
        .map_err(refused)?
        .persist_noclobber(path);
    match moved {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(refused(failed.error)),
        // The name must survive a power loss too, like the records that follow.
        _ => File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused),
    }
}

/// Opens the ledger at `path` for appending, after checking it without changing anything.
pub(super) fn connect(path: &Path, timeouts: Duration) -> Result<Connection, LedgerError> {
    recognise(path)?;
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, timeouts)?;
    let failed = |error| LedgerError::of_sqlite(path, error);
    // SQLite silently falls back to read-only if it may not write.
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        return Err(LedgerError::ReadOnly {
            path: path.to_owned(),
        });
    }
    prepare(&connection).map_err(failed)?;
    bring_up_to_date(&connection).map_err(failed)?;
    Ok(connection)
}

/// Opens the ledger at `path` for reading, without creating any file.
///
/// Records in a log beside the ledger mean that another program is writing to it or was killed: the ledger is then read
/// live, through the log. Otherwise reading through SQLite would create a log, so the file is read as one that nobody
/// changes; what is read then counts only if the file's [state](State) is still the same afterwards.
pub(super) fn connect_read_only(
    path: &Path,
    timeouts: Duration,
) -> Result<(Connection, Option<State>), LedgerError> {
    recognise(path)?;
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let state = State::of(path)?;
    if state.has_log {
        return Ok((open(path, read_only, timeouts)?, None));
    }
    let uri = PathBuf::from(unchanging(path));
    let connection = open_as(path, &uri, read_only | OpenFlags::SQLITE_OPEN_URI, timeouts)?;
    Ok((connection, Some(state)))
}

/// The address of a file that nobody changes meanwhile, and that needs no log to be read:
/// <https://www.sqlite.org/uri.html#uriimmutable>.
fn unchanging(path: &Path) -> OsString {
    let mut uri = b"file:".to_vec();
    // A relative path that begins with two slashes would name a host.
    if path.is_absolute() {
        uri.extend_from_slice(b"//");
    }
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'?' | b'#' | b'%' => uri.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            _ => uri.push(*byte),
        }
    }
    uri.extend_from_slice(b"?immutable=1");
    OsString::from_vec(uri)
}

/// By what a change of the file is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    length: u64,
    modified: SystemTime,
    has_log: bool,
}

impl State {
    pub(super) fn of(path: &Path) -> Result<Self, LedgerError> {
        let unreadable = |source| refusal_to_read(path, source);
        let metadata = fs::metadata(path).map_err(unreadable)?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().map_err(unreadable)?,
            has_log: has_log(path)?,
        })
    }
}

/// Sets the options that every appending connection needs.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a write-ahead log, only FULL flushes at each commit; NORMAL may lose acknowledged records in a power loss.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Brings a ledger of an earlier schema up to date: its list of kinds grows, and tables are added. No stored row changes, so of
/// the existing tables only the text does, in the way of <https://www.sqlite.org/lang_altertable.html#otheralter>.
fn bring_up_to_date(connection: &Connection) -> rusqlite::Result<()> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("user_version")? >= SCHEMA {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another program may have done it meanwhile.
    if number("user_version")? < SCHEMA {
        transaction.execute_batch(IMPORTS)?;
        let version = number("schema_version")?;
        transaction.pragma_update(None, "writable_schema", true)?;
        let changed = transaction.execute(
            "UPDATE sqlite_schema SET sql = replace(replace(sql, ?1, ''), ?2, ?3) WHERE type = 'table' AND name = 'record'",
            [
                ", 'message'",
                "'run-ended', 'notice'",
                "'run-ended', 'notice', 'message', 'judgement', 'imported'",
            ],
        );
        transaction.pragma_update(None, "schema_version", version + 1)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
        transaction.pragma_update(None, "writable_schema", false)?;
        changed?;
    }
    transaction.commit()
}

/// Writes the tables of an empty ledger into a new file.
fn write_empty(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "full")?;
    let transaction = connection.unchecked_transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.execute_batch(IMPORTS)?;
    transaction.commit()?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.close().map_err(|(_, error)| error)
}

/// Rejects a file that is not a ledger or has a newer schema, by its header alone.
fn recognise(path: &Path) -> Result<(), LedgerError> {
    let mut header = Vec::with_capacity(HEADER);
    File::open(path)
        .and_then(|file| file.take(HEADER as u64).read_to_end(&mut header))
        .map_err(|source| refusal_to_read(path, source))?;
    let not_a_ledger = |found: &str| LedgerError::NotALedger {
        path: path.to_owned(),
        found: found.to_owned(),
    };
    if header.is_empty() {
        return Err(not_a_ledger("the file is empty"));
    }
    if header.len() < HEADER || !header.starts_with(b"SQLite format 3\0") {
        return Err(not_a_ledger("it is no SQLite file"));
    }
    let number = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    admit(path, number(68), number(60))
}

/// Opens through SQLite and checks again: a log may hold a newer header than the file.
fn open(path: &Path, access: OpenFlags, timeouts: Duration) -> Result<Connection, LedgerError> {
    open_as(path, path, access, timeouts)
}

/// The same, by another address of the file at `path`.
fn open_as(
    path: &Path,
    address: &Path,
    access: OpenFlags,
    timeouts: Duration,
) -> Result<Connection, LedgerError> {
    let failed = |error| LedgerError::of_sqlite(path, error);
    let connection =
        Connection::open_with_flags(address, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(timeouts).map_err(failed)?;
    // Until the file is known to be a ledger, closing must not write the log back into it.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(failed)?;
    let pragma = |name| {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(failed)
    };
    admit(path, pragma("application_id")?, pragma("user_version")?)?;
    Ok(connection)
}

/// Rejects a file that is not a ledger, or a ledger with a newer schema.
fn admit(path: &Path, application: i32, schema: i32) -> Result<(), LedgerError> {
    let path = path.to_owned();
    match schema {
        _ if application != APPLICATION => Err(LedgerError::NotALedger {
            path,
            found: "it is an SQLite file of another program".to_owned(),
        }),
        FIRST..=SCHEMA => Ok(()),
        ..FIRST => Err(LedgerError::NotALedger {
            path,
            found: format!("there is no schema {schema}"),
        }),
        _ => Err(LedgerError::Newer {
            path,
            found: schema,
            known: SCHEMA,
        }),
    }
}

/// Whether SQLite has a non-empty log of the ledger at `path`, next to the target of a symbolic link. An empty log
/// remains if the disk was full before the first record.
fn has_log(path: &Path) -> Result<bool, LedgerError> {
    let mut log = OsString::from(
        path.canonicalize()
            .map_err(|source| refusal_to_read(path, source))?,
    );
    log.push("-wal");
    match fs::metadata(log) {
        Ok(metadata) => Ok(metadata.len() > 0),
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(refusal_to_read(path, source)),
    }
}

fn refusal_to_read(path: &Path, source: io::Error) -> LedgerError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => LedgerError::Missing { path },
        _ => LedgerError::Unreadable { path, source },
    }
}
