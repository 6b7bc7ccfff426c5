//! An index beside a ledger, by which verdicts are found without reading the ledger through.
//!
//! Its file holds nothing that the ledger does not, and may be deleted. It ends with the digest of all before it, and says which
//! record of the ledger it goes up to, with that record's link of the chain: an index that is damaged, or of another ledger, is made
//! anew, and one that is behind reads on from there.

mod judged;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, ToSql, params};

pub use self::judged::Judged;
use self::judged::{JUDGED, judged, kept, of_judgement, of_round};
use super::judgement::Speedup;
use super::read::entry;
use super::record::{Entry, RecordKind, RunId};
use super::{Ledger, LedgerError};

/// Sets the digests of indexes apart; another form of the tables gets another number.
const CONTEXT: &str = "gauntlet ledger 2026 index 2";

/// Length of the digest at the end of the file.
const DIGEST: usize = 32;

/// The table of verdicts, whose rows are in the order of the ledger, and the place up to which it goes.
const TABLES: &str = "
    CREATE TABLE verdict (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL, sequence INTEGER NOT NULL, origin TEXT, at TEXT NOT NULL, command TEXT NOT NULL, client TEXT,
        task TEXT, kernel TEXT, kernel_digest TEXT, baseline TEXT, verdict TEXT, reason TEXT NOT NULL,
        lower REAL, estimate REAL, upper REAL, interrupted INTEGER NOT NULL, predicted INTEGER NOT NULL,
        round TEXT, pitch TEXT, kernel_commit TEXT, baseline_commit TEXT
    );
    CREATE INDEX verdict_run ON verdict (run);
    CREATE INDEX verdict_task ON verdict (task);
    CREATE INDEX verdict_kernel ON verdict (kernel_digest);
    CREATE INDEX verdict_client ON verdict (client);
    CREATE TABLE upto (sequence INTEGER NOT NULL, digest TEXT NOT NULL);
    INSERT INTO upto VALUES (0, '');";

/// Which verdicts are wanted: those that fit everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of this task.
    pub task: Option<String>,
    /// Of the kernel with this digest, or with a digest that begins so.
    pub kernel: Option<String>,
    /// On behalf of this client.
    pub client: Option<String>,
    /// With a place in the history of a repository, of the kernel or of what it was compared with.
    pub in_history: bool,
    /// The highest number of verdicts; the newest are taken.
    pub newest: Option<usize>,
}

/// The index of a ledger, in memory.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    file: PathBuf,
}

impl Index {
    /// The index of a ledger as it is now. What had to be read anew is kept in the file beside the ledger for the next time; a
    /// file that cannot be written costs that time only.
    ///
    /// # Errors
    /// If the ledger cannot be read or is inconsistent.
    pub fn of(ledger: &Ledger) -> Result<Self, LedgerError> {
        let mut file = OsString::from(ledger.path());
        file.push(".index");
        let file = PathBuf::from(file);
        let connection = match load(&file) {
            Some(kept) => kept,
            None => empty().map_err(|error| ledger.failure(error))?,
        };
        let mut index = Self { connection, file };
        if index.catch_up(ledger)? {
            index.save();
        }
        Ok(index)
    }

    /// Reads what the ledger has got since; returns whether there was anything. An index that goes up to a record which the ledger
    /// does not have is made anew.
    ///
    /// # Errors
    /// If the ledger cannot be read or is inconsistent.
    pub fn catch_up(&mut self, ledger: &Ledger) -> Result<bool, LedgerError> {
        let failed = |error| ledger.failure(error);
        let (mut from, digest) = self.upto().map_err(failed)?;
        if from > 0 && ledger.digest_of(from)?.as_ref() != Some(&digest) {
            self.connection = empty().map_err(failed)?;
            from = 0;
        }
        let Some((to, digest)) = ledger.last_link()?.filter(|(to, _)| *to > from) else {
            return Ok(false);
        };
        let mut tasks = BTreeMap::new();
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        let mut place = from;
        while place < to {
            let until = to.min(place + AT_ONCE);
            for entry in ledger.verdicts_between(place, until)? {
                let one = match entry.record.kind {
                    RecordKind::Judgement => of_judgement(&entry),
                    _ => Some(of_round(&entry, task_of(ledger, &mut tasks, &entry)?)),
                };
                if let Some(one) = one {
                    add(&transaction, &one).map_err(failed)?;
                }
            }
            place = until;
        }
        transaction
            .execute("UPDATE upto SET sequence = ?1, digest = ?2", params![to, digest])
            .and_then(|_| transaction.commit())
            .map_err(failed)?;
        Ok(true)
    }

    /// The verdicts that are wanted, the newest first.
    ///
    /// # Errors
    /// If the memory does not suffice.
    pub fn verdicts(&self, wanted: &Wanted) -> Result<Vec<Judged>, LedgerError> {
        let mut conditions = vec!["TRUE"];
        let mut parameters: Vec<(&str, &dyn ToSql)> = Vec::new();
        let end = wanted.kernel.as_ref().map(|kernel| format!("{kernel}~"));
        for (name, condition, value) in [
            (":task", "task = :task", &wanted.task),
            (":kernel", "kernel_digest >= :kernel", &wanted.kernel),
            (":end", "kernel_digest < :end", &end),
            (":client", "client = :client", &wanted.client),
        ] {
            if let Some(value) = value {
                conditions.push(condition);
                parameters.push((name, value));
            }
        }
        if wanted.in_history {
            conditions.push("(kernel_commit IS NOT NULL OR baseline_commit IS NOT NULL)");
        }
        let most = wanted
            .newest
            .and_then(|most| i64::try_from(most).ok())
            .unwrap_or(-1);
        parameters.push((":most", &most));
        self.query(
            &format!(
                "{JUDGED} WHERE {} ORDER BY id DESC LIMIT :most",
                conditions.join(" AND ")
            ),
            &parameters[..],
        )
    }

    /// The verdicts of a run, in order.
    ///
    /// # Errors
    /// If the memory does not suffice.
    pub fn of_run(&self, run: &RunId) -> Result<Vec<Judged>, LedgerError> {
        self.query(
            &format!("{JUDGED} WHERE run = :run ORDER BY id"),
            &[(":run", run)],
        )
    }

    /// How many verdicts there are.
    ///
    /// # Errors
    /// If the memory does not suffice.
    pub fn count(&self) -> Result<u64, LedgerError> {
        self.connection
            .query_row("SELECT count(*) FROM verdict", [], |row| row.get(0))
            .map_err(|error| LedgerError::of_sqlite(&self.file, error))
    }

    fn query(&self, statement: &str, parameters: &[(&str, &dyn ToSql)]) -> Result<Vec<Judged>, LedgerError> {
        let query = || -> rusqlite::Result<_> {
            self.connection
                .prepare_cached(statement)?
                .query_map(parameters, judged)?
                .collect()
        };
        query().map_err(|error| LedgerError::of_sqlite(&self.file, error))
    }

    fn upto(&self) -> rusqlite::Result<(u64, String)> {
        self.connection
            .query_row("SELECT sequence, digest FROM upto", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
    }

    /// Replaces the file whole, so that programs that read it meanwhile, or replace it too, see one or the other.
    fn save(&mut self) {
        let folder = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let Ok(image) = self.connection.serialize(rusqlite::MAIN_DB) else {
            return;
        };
        let write = || -> std::io::Result<()> {
            let mut draft = tempfile::Builder::new()
                .prefix(".gauntlet-index-")
                .permissions(fs::Permissions::from_mode(0o666))
                .tempfile_in(folder)?;
            draft.write_all(&image)?;
            draft.write_all(&digest(&image))?;
            draft.persist(&self.file).map_err(|error| error.error)?;
            Ok(())
        };
        // The next program reads the ledger through once more.
        let _saved = write();
    }
}

/// Places of the ledger that are read at a time.
const AT_ONCE: u64 = 1024;

fn digest(image: &[u8]) -> [u8; DIGEST] {
    blake3::derive_key(CONTEXT, image)
}

fn empty() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

/// The index in a file; none if there is none, or it is not as it was written.
fn load(file: &Path) -> Option<Connection> {
    let bytes = fs::read(file).ok()?;
    let (image, told) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
    if digest(image) != told {
        return None;
    }
    let mut connection = Connection::open_in_memory().ok()?;
    connection
        .deserialize_read_exact(rusqlite::MAIN_DB, image, image.len(), false)
        .ok()?;
    Some(connection)
}

/// The suite of the round that a verdict belongs to.
fn task_of(
    ledger: &Ledger,
    known: &mut BTreeMap<(RunId, Option<String>), Option<String>>,
    entry: &Entry,
) -> Result<Option<String>, LedgerError> {
    let key = (entry.record.run.clone(), entry.record.round.clone());
    if let Some(task) = known.get(&key) {
        return Ok(task.clone());
    }
    let found = ledger.query(
        "SELECT json_extract(body, '$.file.suite') FROM every_record WHERE run = ?1 AND kind = 'round-started' AND round IS ?2",
        &[&key.0, &key.1],
        |row| row.get(0),
    )?;
    let task: Option<String> = found.into_iter().next().flatten();
    known.insert(key, task.clone());
    Ok(task)
}

/// Adds a verdict. What a command found after it was interrupted takes the place of what it had found before.
fn add(connection: &Connection, one: &Judged) -> rusqlite::Result<()> {
    if one.pitch.is_none() {
        connection
            .prepare_cached("DELETE FROM verdict WHERE run = ?1 AND interrupted")?
            .execute([&one.run])?;
    }
    let bound = |of: fn(&Speedup) -> f64| one.speedup.as_ref().map(of);
    connection
        .prepare_cached(
            "INSERT INTO verdict (run, sequence, origin, at, command, client, task, kernel, kernel_digest, baseline, verdict, reason,
                 lower, estimate, upper, interrupted, predicted, round, pitch, kernel_commit,
                 baseline_commit)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
        )?
        .execute(params![
            one.run,
            one.sequence,
            one.origin,
            one.at.to_string(),
            one.command,
            one.client,
            one.task,
            one.kernel,
            one.kernel_digest,
            one.baseline,
            one.verdict,
            one.reason,
            bound(|speedup| speedup.lower),
            bound(|speedup| speedup.estimate),
            bound(|speedup| speedup.upper),
            one.interrupted,
            one.predicted,
            one.round,
            one.pitch,
            kept(one.commit.as_ref()),
            kept(one.baseline_commit.as_ref()),
        ])?;
    Ok(())
}

impl Ledger {
    /// The number and the link of the last record; none if the ledger is empty.
    fn last_link(&self) -> Result<Option<(u64, String)>, LedgerError> {
        self.read(|connection| {
            connection
                .query_row(
                    "SELECT sequence, digest FROM record ORDER BY sequence DESC LIMIT 1",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()
        })
    }

    fn digest_of(&self, sequence: u64) -> Result<Option<String>, LedgerError> {
        let found = self.query(
            "SELECT digest FROM record WHERE sequence = ?1",
            &[&sequence],
            |row| row.get(0),
        )?;
        Ok(found.into_iter().next())
    }

    /// The verdicts at places after one and up to another, in order.
    fn verdicts_between(&self, after: u64, to: u64) -> Result<Vec<Entry>, LedgerError> {
        self.query(
            "SELECT sequence, at, run, kind, round, pitch, gate, CASE kind WHEN 'judgement' THEN json_remove(body, '$.document')
                    ELSE body END, digest, nullif(origin, '')
             FROM every_record WHERE place > ?1 AND place <= ?2 AND +kind IN ('verdict', 'judgement') ORDER BY place, sequence",
            &[&after, &to],
            entry,
        )
    }
}
