//! The file of a ledger: created atomically, and identified before anything is changed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::error::LedgerError;

/// Version of the schema in `schema.sql`, kept as SQLite's `user_version`.
pub(super) const SCHEMA: i32 = 2;

/// The schema before records of the kind `message`, which differs in nothing but the list of kinds.
const WITHOUT_MESSAGES: i32 = 1;

/// "GNTL", kept as SQLite's `application_id`: distinguishes a ledger from other SQLite files.
const APPLICATION: i32 = i32::from_be_bytes(*b"GNTL");

/// Length of the header of an SQLite file; offsets below: <https://www.sqlite.org/fileformat.html#the_database_header>.
const HEADER: usize = 100;

/// Header bytes for the write and read version: with a write-ahead log (2) or without (1), at offsets 18 and 19.
const JOURNAL_VERSIONS: std::ops::Range<usize> = 18..20;

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
    admit_messages(&connection).map_err(failed)?;
    Ok(connection)
}

/// Opens the ledger at `path` for reading, without creating any file.
///
/// Records in a log beside the ledger mean that another program is writing to it or was killed: the ledger is then read
/// live, through the log. Otherwise reading through SQLite would create a log, so the file is copied into memory and
/// read from there.
pub(super) fn connect_read_only(path: &Path, timeouts: Duration) -> Result<Connection, LedgerError> {
    loop {
        recognise(path)?;
        if has_log(path)? {
            return open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, timeouts);
        }
        if let Some(connection) = open_copy(path)? {
            return Ok(connection);
        }
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

/// Brings a ledger of schema 1 up to date: its list of kinds gets one more. No stored row changes, so only the text of the
/// schema does, in the way of <https://www.sqlite.org/lang_altertable.html#otheralter>.
fn admit_messages(connection: &Connection) -> rusqlite::Result<()> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("user_version")? >= SCHEMA {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another program may have done it meanwhile.
    if number("user_version")? < SCHEMA {
        let version = number("schema_version")?;
        transaction.pragma_update(None, "writable_schema", true)?;
        let changed = transaction.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE type = 'table' AND name = 'record'",
            ["'run-ended', 'notice'", "'run-ended', 'notice', 'message'"],
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
    let failed = |error| LedgerError::of_sqlite(path, error);
    let connection =
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
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
        WITHOUT_MESSAGES | SCHEMA => Ok(()),
        ..SCHEMA => Err(LedgerError::NotALedger {
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

/// A connection to a copy in memory; none if another program opened the file for writing meanwhile.
fn open_copy(path: &Path) -> Result<Option<Connection>, LedgerError> {
    let unreadable = |source| refusal_to_read(path, source);
    let state = || fs::metadata(path).and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    let before = state().map_err(unreadable)?;
    let mut bytes = fs::read(path).map_err(unreadable)?;
    if has_log(path)? || state().map_err(unreadable)? != before {
        return Ok(None);
    }
    // A database in memory cannot have a log: <https://www.sqlite.org/c3ref/deserialize.html>.
    if let Some(versions) = bytes.get_mut(JOURNAL_VERSIONS) {
        versions.fill(1);
    }
    let copy = |bytes: &[u8]| {
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact(rusqlite::MAIN_DB, bytes, bytes.len(), true)?;
        Ok(connection)
    };
    copy(&bytes)
        .map(Some)
        .map_err(|error| LedgerError::of_sqlite(path, error))
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
