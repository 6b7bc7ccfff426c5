//! The ledger: an append-only SQLite file of everything that happened, each record durable before the
//! next step begins, so that a run killed at any moment can be read and resumed.
//!
//! Integrity: triggers refuse changes, a hash chain reveals changes made despite them ([`Ledger::verify`]), and a file
//! with a newer schema or of another program is never modified.

mod chain;
mod error;
mod file;
mod import;
mod index;
mod judgement;
mod read;
mod record;
mod sources;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::{Value, json};

use self::chain::Link;
pub use self::chain::{Breach, Verification};
pub use self::error::LedgerError;
pub use self::import::Imported;
pub use self::index::{Index, Judged, Wanted};
pub use self::judgement::{Commit, JudgedKernel, JudgementRecord, Speedup};
pub use self::record::{Entry, Record, RecordKind, RunId, RunStart, RunSummary};
pub use self::sources::Sources;

/// How long to wait for another program: an append takes milliseconds, so a program that holds the lock longer than
/// this is not appending.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open ledger. Several programs may open the same ledger and append to it.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
    /// The state of a file that is read as if nobody changed it.
    unchanged: Option<file::State>,
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
    /// While another program is appending, its records become visible.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, is not a ledger, or has a newer schema.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let path = path.as_ref();
        let (connection, unchanged) = file::connect_read_only(path, PATIENCE)?;
        Self::of(connection, path, unchanged)
    }

    fn of(connection: Connection, path: &Path, unchanged: Option<file::State>) -> Result<Self, LedgerError> {
        read::make_views(&connection).map_err(|error| LedgerError::of_sqlite(path, error))?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            unchanged,
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
        self.transact(|transaction| begin(transaction, start))
    }

    /// Records what a command found, and returns the run that holds it: a new one, or the one that was interrupted. The run ends
    /// with it unless it was interrupted.
    ///
    /// # Errors
    /// If the run to go on with is unknown or has ended, or if the ledger cannot be written.
    pub fn record_judgement(
        &self,
        start: &RunStart,
        judgement: &JudgementRecord,
        resumed: Option<&RunId>,
    ) -> Result<RunId, LedgerError> {
        self.transact(|transaction| {
            let refusal = resumed.map(|run| self.refusal(transaction, run)).transpose()?;
            if let Some(refusal) = refusal.flatten() {
                return Ok(Err(refusal));
            }
            let run = match resumed {
                Some(run) => run.clone(),
                None => begin(transaction, start)?,
            };
            let now = Timestamp::now();
            note(transaction, now, &run, RecordKind::Judgement, json!(judgement))?;
            if !judgement.interrupted {
                note(transaction, now, &run, RecordKind::RunEnded, json!({}))?;
            }
            Ok(Ok(run))
        })?
    }

    /// Appends a record and returns its sequence number. When this returns, the record is on the disk and survives a
    /// kill or a power loss.
    ///
    /// # Errors
    /// If the run is unknown or has ended, if the record would start it again, or if the ledger cannot be written:
    /// read-only, locked, or the disk is full. Nothing is recorded then.
    pub fn append(&self, record: &Record) -> Result<u64, LedgerError> {
        self.transact(|transaction| {
            let refusal = self.refusal(transaction, &record.run)?;
            Ok(match refusal {
                Some(refusal) => Err(refusal),
                None if record.kind == RecordKind::RunStarted => Err(LedgerError::Started {
                    path: self.path.clone(),
                    run: record.run.clone(),
                }),
                None => Ok(insert(transaction, Timestamp::now(), record)?),
            })
        })?
    }

    /// Why a run takes no record; none if it does.
    fn refusal(&self, connection: &Connection, run: &RunId) -> rusqlite::Result<Option<LedgerError>> {
        let (path, of) = (self.path.clone(), run.clone());
        Ok(match ended(connection, run)? {
            None => Some(LedgerError::UnknownRun { path, run: of }),
            Some(true) => Some(LedgerError::Ended { path, run: of }),
            Some(false) => None,
        })
    }

    /// Walks the whole hash chain and reports whether every record is unchanged, or else the first that is not.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify(&self) -> Result<Verification, LedgerError> {
        self.read(chain::verify)
    }

    /// The same for the chain of each ledger that was imported, by its origin.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify_imported(&self) -> Result<Vec<(String, Verification)>, LedgerError> {
        self.read(chain::verify_imported)
    }

    fn open_with_timeouts(path: &Path, timeouts: Duration) -> Result<Self, LedgerError> {
        file::create_if_missing(path)?;
        Self::of(file::connect(path, timeouts)?, path, None)
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

    /// Reads the file; again if it is changed meanwhile by a program that began to append since it was opened.
    fn read<T>(&self, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, LedgerError> {
        let mut read = work(&self.connection);
        let mut unchanged = self.unchanged.clone();
        while let Some(state) = unchanged {
            if file::State::of(&self.path)? == state {
                break;
            }
            let now = Self::open_read_only(&self.path)?;
            read = work(&now.connection);
            unchanged = now.unchanged;
        }
        read.map_err(|error| self.failure(error))
    }

    fn failure(&self, error: rusqlite::Error) -> LedgerError {
        LedgerError::of_sqlite(&self.path, error)
    }
}

/// Begins a run under a name that is not taken.
fn begin(transaction: &Transaction<'_>, start: &RunStart) -> rusqlite::Result<RunId> {
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
    note(transaction, at, &run, RecordKind::RunStarted, json!(start))?;
    Ok(run)
}

/// Appends a record of a whole run.
fn note(
    transaction: &Transaction<'_>,
    at: Timestamp,
    run: &RunId,
    kind: RecordKind,
    body: Value,
) -> rusqlite::Result<u64> {
    let record = Record {
        run: run.clone(),
        kind,
        round: None,
        pitch: None,
        gate: None,
        body,
    };
    insert(transaction, at, &record)
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
        let is_taken: bool = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM every_run WHERE id = ?1)")?
            .query_row([&run], |row| row.get(0))?;
        if !is_taken {
            return Ok(run);
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests;
