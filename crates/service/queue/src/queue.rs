//! The queue in SQLite.

mod attempts;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::blobs::{Blobs, digest};
use crate::error::QueueError;
use crate::outcome::{JobResult, State};
use crate::status::Status;
use crate::submission::Submission;
use crate::ticket::{Ticket, is_inside};
pub use attempts::{LEASE, Rest};
use tables::{confirm, connect, insert, known, millis, status};

/// Whether a result may yet become a ticket's: that of one whose attempts seemed to die, too.
const OPEN: &str = "(state IN ('queued', 'running')
    OR state = 'failed' AND NOT EXISTS (SELECT 1 FROM results WHERE results.ticket = tickets.id))";

/// After this many attempts that died the ticket fails.
pub const MAX_DEAD_ATTEMPTS: u32 = 3;

/// The most tickets of one client that wait at a time.
const MAX_WAITING: usize = 64;

/// Whether a result became its ticket's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is the first.
    First,
    /// The ticket had been decided, or cancelled, before.
    Late,
}

/// A queue in a folder: `queue.sqlite`, and beside it `blobs`, `tickets` and `results`. Any number of programs of one machine may use it
/// at once; those of other machines only run its jobs, which read and write files (SQLite's write-ahead log works on one machine).
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    base: Mutex<Connection>,
}

impl Queue {
    /// Opens the queue of a folder, which is made if there is none.
    ///
    /// # Errors
    /// If the folder cannot be written, or its database is damaged.
    pub fn open(folder: &Path) -> Result<Self, QueueError> {
        for folder in [folder.join("tickets"), folder.join("results")] {
            fs::create_dir_all(&folder).map_err(QueueError::at(&folder))?;
        }
        let path = folder.join("queue.sqlite");
        let base = connect(&path).map_err(|source| QueueError::Storage { path, source })?;
        Ok(Self {
            folder: folder.to_owned(),
            base: Mutex::new(base),
        })
    }

    /// The contents of the tickets' files.
    pub fn blobs(&self) -> Blobs {
        Blobs::in_folder(self.folder.join("blobs"))
    }

    /// Where jobs publish.
    pub fn results(&self) -> PathBuf {
        self.folder.join("results")
    }

    /// Where the tickets' files are.
    pub fn tickets(&self) -> PathBuf {
        self.folder.join("tickets")
    }

    /// A ticket's file.
    pub fn ticket_file(&self, id: &str) -> PathBuf {
        self.tickets().join(format!("{id}.json"))
    }

    /// Queues a judgement, unless it is queued already.
    ///
    /// # Errors
    /// If the judgement's words are wrong, a file's name leads out of the ticket's folder, its key is another's, or too many tickets of its client wait.
    pub fn submit(&self, submission: &Submission) -> Result<Ticket, QueueError> {
        submission.judgement.arguments()?;
        let mut paths = submission.files.keys().chain(&submission.folder);
        if let Some(name) = paths.find(|name| !is_inside(name)) {
            return Err(QueueError::Judgement(format!(
                "{name} leads out of the ticket's folder; name files by their path below it"
            )));
        }
        let blobs = self.blobs();
        let mut files = BTreeMap::new();
        for (name, contents) in &submission.files {
            files.insert(name.clone(), blobs.put(contents)?);
        }
        let Submission { client, key, .. } = submission;
        let asked = Ticket {
            id: String::new(),
            client: Some(client.clone()),
            judgement: submission.judgement.clone(),
            folder: submission.folder.clone(),
            files,
        };
        let content = serde_json::to_string(&asked).unwrap_or_default();
        let content = digest(content.as_bytes());
        let found = self.write(|base| {
            if let Some(known) = known(base, client, key.as_deref(), &content)? {
                return Ok(Ok(known));
            }
            let waiting: usize = base.query_row(
                "SELECT COUNT(*) FROM tickets WHERE client = ?1 AND state = 'queued'",
                [client],
                |row| row.get(0),
            )?;
            if waiting >= MAX_WAITING {
                return Ok(Err(waiting));
            }
            insert(base, client, key.as_deref(), &content, &asked, None)
                .map(|ticket| Ok((ticket, content.clone())))
        })?;
        let (ticket, stored) = found.map_err(|waiting| QueueError::Full {
            client: client.clone(),
            waiting,
        })?;
        if stored == content {
            self.write_ticket(&ticket)?;
            Ok(ticket)
        } else {
            Err(QueueError::KeyTaken(key.clone().unwrap_or_default()))
        }
    }

    /// The ticket that a client's key names, if there is one.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn by_key(&self, client: &str, key: &str) -> Result<Option<String>, QueueError> {
        let query = "SELECT id FROM tickets WHERE client = ?1 AND key = ?2";
        self.read(|base| base.query_row(query, [client, key], |row| row.get(0)).optional())
    }

    /// Records what a job published. The first result of a ticket is its only one, also of one that had failed because its attempts
    /// seemed to die. A candidate that was found faster by the target is
    /// queued once more.
    ///
    /// # Errors
    /// If the queue cannot be written.
    pub fn record(&self, attempt: u32, result: &JobResult) -> Result<Recorded, QueueError> {
        let text = serde_json::to_string(result).unwrap_or_default();
        let (recorded, second) = self.write(|base| {
            let id = &result.ticket;
            let now = millis(Timestamp::now());
            let open = format!("SELECT {OPEN} FROM tickets WHERE id = ?1");
            let is_late = !base.query_row(&open, [id], |row| row.get::<_, bool>(0))?;
            if is_late {
                base.execute(
                    "UPDATE attempts SET ended = ?3, reason = ?4 WHERE ticket = ?1 AND number = ?2 AND ended IS NULL",
                    params![id, attempt, now, "another attempt, or its client, was first"],
                )?;
                return Ok((Recorded::Late, None));
            }
            // One that was taken for dead has published after all.
            base.execute(
                "UPDATE attempts SET ended = COALESCE(ended, ?3), reason = NULL, died = FALSE WHERE ticket = ?1 AND number = ?2",
                params![id, attempt, now],
            )?;
            base.execute("INSERT INTO results (ticket, result) VALUES (?1, ?2)", params![id, text])?;
            base.execute(
                "UPDATE tickets SET state = ?2, ended = ?3, reason = ?4 WHERE id = ?1",
                params![
                    id,
                    result.state.name(),
                    now,
                    (result.state == State::Failed).then_some(&result.report)
                ],
            )?;
            let second = if result.is_adopted() { confirm(base, id)? } else { None };
            Ok((Recorded::First, second))
        })?;
        second.iter().try_for_each(|ticket| self.write_ticket(ticket))?;
        Ok(recorded)
    }

    /// Records what a job of this ticket has published, if nobody has: whoever ran it may be gone.
    fn collect(&self, id: &str) -> Result<(), QueueError> {
        let query = format!(
            "SELECT (SELECT COALESCE(MAX(number), 0) FROM attempts WHERE ticket = id) FROM tickets WHERE id = ?1 AND {OPEN}"
        );
        let open: Option<u32> =
            self.read(|base| base.query_row(&query, [id], |row| row.get(0)).optional())?;
        match open.and_then(|attempt| Some((attempt, self.published(id)?))) {
            Some((attempt, result)) => self.record(attempt, &result).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Gives a ticket up, and the second comparison that it led to. False if it was decided before.
    ///
    /// # Errors
    /// If there is no such ticket.
    pub fn cancel(&self, id: &str) -> Result<bool, QueueError> {
        self.status(id)?;
        self.write(|base| {
            let changed = base.execute(
                "UPDATE tickets SET state = 'cancelled', ended = ?2
                 WHERE (id = ?1 OR confirms = ?1) AND state IN ('queued', 'running')",
                params![id, millis(Timestamp::now())],
            )?;
            Ok(changed > 0)
        })
    }

    /// Whether a ticket was given up.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn is_cancelled(&self, id: &str) -> Result<bool, QueueError> {
        let query = "SELECT state = 'cancelled' FROM tickets WHERE id = ?1";
        self.read(|base| base.query_row(query, [id], |row| row.get(0)))
    }

    /// What a job of this ticket has published; none if none has.
    pub fn published(&self, id: &str) -> Option<JobResult> {
        let text = fs::read(self.results().join(format!("{id}.json"))).ok()?;
        let result: JobResult = serde_json::from_slice(&text).ok()?;
        (result.ticket == id).then_some(result)
    }

    /// Where a ticket stands.
    ///
    /// # Errors
    /// If there is no such ticket.
    pub fn status(&self, id: &str) -> Result<Status, QueueError> {
        self.collect(id)?;
        let found = self.read(|base| status(base, id))?;
        found.ok_or_else(|| QueueError::UnknownTicket(id.to_owned()))
    }

    /// The newest tickets of a client or of all, of one task or of all; second comparisons are part of the first.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn history(
        &self,
        client: Option<&str>,
        task: Option<&str>,
        most: usize,
    ) -> Result<Vec<Status>, QueueError> {
        let open: Vec<String> = self.read(|base| {
            let mut query = base.prepare_cached(&format!("SELECT id FROM tickets WHERE {OPEN}"))?;
            query.query_map([], |row| row.get(0))?.collect()
        })?;
        open.iter().try_for_each(|id| self.collect(id))?;
        self.read(|base| {
            let mut query = base.prepare_cached(
                "SELECT id FROM tickets WHERE (?1 IS NULL OR client = ?1) AND (?2 IS NULL OR task = ?2) AND confirms IS NULL
                 ORDER BY number DESC LIMIT ?3",
            )?;
            let rows = query.query_map(params![client, task, most], |row| row.get::<_, String>(0))?;
            let ids: Vec<String> = rows.collect::<Result<_, _>>()?;
            Ok(ids
                .iter()
                .map(|id| status(base, id))
                .collect::<Result<Vec<_>, _>>()?
                .into_iter()
                .flatten()
                .collect())
        })
    }

    /// How many tickets there are in each state.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn counts(&self) -> Result<BTreeMap<String, usize>, QueueError> {
        self.read(|base| {
            let mut query = base.prepare_cached("SELECT state, COUNT(*) FROM tickets GROUP BY state")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    fn write_ticket(&self, ticket: &Ticket) -> Result<(), QueueError> {
        let path = self.ticket_file(&ticket.id);
        if path.exists() {
            return Ok(());
        }
        let beside = path.with_extension(format!("{}.partial", std::process::id()));
        let text = serde_json::to_string_pretty(ticket).unwrap_or_default();
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(QueueError::at(&path))
    }

    fn base(&self) -> MutexGuard<'_, Connection> {
        self.base.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, QueueError> {
        query(&self.base()).map_err(|source| self.storage(source))
    }

    /// All or nothing, after every other program that writes.
    fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, QueueError> {
        let mut base = self.base();
        let all = || {
            let transaction = base.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let found = change(&transaction)?;
            transaction.commit()?;
            Ok(found)
        };
        all().map_err(|source| self.storage(source))
    }

    fn storage(&self, source: rusqlite::Error) -> QueueError {
        QueueError::Storage {
            path: self.folder.join("queue.sqlite"),
            source,
        }
    }
}
