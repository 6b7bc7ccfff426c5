//! The ledger: an append-only SQLite file of everything that happened, each record durable before the
//! next step begins, so that a run killed at any moment can be read and resumed.
//!
//! Integrity: triggers refuse changes, a hash chain reveals changes made despite them ([`Ledger::verify`]), and a file
//! with a newer schema or of another program is never modified.

mod chain;
mod error;
mod file;
mod read;
mod record;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::json;

use self::chain::Link;
pub use self::chain::{Breach, Verification};
pub use self::error::LedgerError;
pub use self::record::{Entry, Record, RecordKind, RunId, RunStart, RunSummary};

/// How long to wait for another program: an append takes milliseconds, so a program that holds the lock longer than
/// this is not appending.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open ledger. Several programs may open the same ledger and append to it.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
}

impl Ledger {
    /// Opens the ledger at `path` for appending, and creates it, with its folder, if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be created or written, is not a ledger, has a newer schema, or stays locked; in each of these
    /// cases it is left unchanged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        Self::open_with_timeouts(path.as_ref(), PATIENCE)
    }

    /// Opens the ledger at `path` for reading; creates and changes no file.
    ///
    /// While another program is appending, its records become visible; a ledger that no program is writing is read into
    /// memory completely and shows its content at this moment.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, is not a ledger, or has a newer schema.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let path = path.as_ref();
        Ok(Self {
            connection: file::connect_read_only(path, PATIENCE)?,
            path: path.to_owned(),
        })
    }

    /// The file's path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the start of a run, and gives it a unique name.
    ///
    /// The run's fixed inputs are also stored as the body of its first record, so that the hash chain and exports cover
    /// them.
    ///
    /// # Errors
    /// If the ledger cannot be written: read-only, locked, or the disk is full.
    pub fn start_run(&self, start: &RunStart) -> Result<RunId, LedgerError> {
        self.transact(|transaction| {
            let at = Timestamp::now();
            let run = unused_name(transaction, at, start)?;
            transaction.execute(
                "INSERT INTO run (id, started_at, version, file, digest, environment) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    run,
                    at.to_string(),
                    start.version,
                    start.file,
                    start.digest,
                    start.environment.to_string()
                ],
            )?;
            let record = Record {
                run,
                kind: RecordKind::RunStarted,
                round: None,
                pitch: None,
                gate: None,
                body: json!(start),
            };
            insert(transaction, at, &record)?;
            Ok(record.run)
        })
    }

    /// Appends a record and returns its sequence number. When this returns, the record is on the disk and survives a
    /// kill or a power loss.
    ///
    /// # Errors
    /// If the run is unknown or has ended, if the record would start it again, or if the ledger cannot be written:
    /// read-only, locked, or the disk is full. Nothing is recorded then.
    pub fn append(&self, record: &Record) -> Result<u64, LedgerError> {
        let (path, run) = (|| self.path.clone(), || record.run.clone());
        self.transact(|transaction| {
            Ok(match ended(transaction, &record.run)? {
                None => Err(LedgerError::UnknownRun {
                    path: path(),
                    run: run(),
                }),
                Some(true) => Err(LedgerError::Ended {
                    path: path(),
                    run: run(),
                }),
                Some(false) if record.kind == RecordKind::RunStarted => Err(LedgerError::Started {
                    path: path(),
                    run: run(),
                }),
                Some(false) => Ok(insert(transaction, Timestamp::now(), record)?),
            })
        })?
    }

    /// Walks the whole hash chain and reports whether every record is unchanged, or else the first that is not.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify(&self) -> Result<Verification, LedgerError> {
        chain::verify(&self.connection).map_err(|error| self.failure(error))
    }

    fn open_with_timeouts(path: &Path, timeouts: Duration) -> Result<Self, LedgerError> {
        file::create_if_missing(path)?;
        Ok(Self {
            connection: file::connect(path, timeouts)?,
            path: path.to_owned(),
        })
    }

    /// Runs `work` in its own transaction, which locks the ledger from the start: the digest that a record follows must
    /// still be the last one when the record is inserted.
    fn transact<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let transact = || {
            // "Unchecked" only means that the transaction borrows the connection immutably: no transaction outlives a
            // method of this type, so they never nest.
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        transact().map_err(|error| self.failure(error))
    }

    fn failure(&self, error: rusqlite::Error) -> LedgerError {
        LedgerError::of_sqlite(&self.path, error)
    }
}

/// Appends a record to the chain.
fn insert(transaction: &Transaction<'_>, at: Timestamp, record: &Record) -> rusqlite::Result<u64> {
    let (highest, previous) = chain::head(transaction)?;
    let sequence = highest + 1;
    let (at, body) = (at.to_string(), record.body.to_string());
    let digest = Link {
        sequence,
        run: record.run.as_str(),
        at: &at,
        kind: record.kind.name(),
        round: record.round.as_deref(),
        pitch: record.pitch.as_deref(),
        gate: record.gate.as_deref(),
        body: &body,
    }
    .digest(&previous);
    transaction
        .prepare_cached(
            "INSERT INTO record (sequence, run, at, kind, round, pitch, gate, body, digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            sequence,
            record.run,
            at,
            record.kind,
            record.round,
            record.pitch,
            record.gate,
            body,
            digest
        ])?;
    Ok(sequence)
}

/// Whether the run has ended; none if there is no such run.
fn ended(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<bool>> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM record WHERE run = run.id AND kind = ?2) FROM run WHERE id = ?1",
        )?
        .query_row(params![run, RecordKind::RunEnded], |row| row.get(0))
        .optional()
}

/// A name that no run of the ledger has.
fn unused_name(connection: &Connection, at: Timestamp, start: &RunStart) -> rusqlite::Result<RunId> {
    let mut attempt = 0_u32;
    loop {
        let salt: [&[u8]; 3] = [
            &std::process::id().to_le_bytes(),
            &attempt.to_le_bytes(),
            start.digest.as_bytes(),
        ];
        let run = RunId::for_start(at, &salt);
        if ended(connection, &run)?.is_none() {
            return Ok(run);
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests;
