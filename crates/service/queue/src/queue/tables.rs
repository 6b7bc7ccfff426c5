//! The tables of the queue, and what is asked of them within a transaction.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use super::{MAX_DEAD_ATTEMPTS, Rest};
use crate::blobs::digest;
use crate::judgement::JudgementKind;
use crate::outcome::{JobResult, State};
use crate::status::{Attempt, Confirmation, Status};
use crate::ticket::Ticket;

/// How long to wait for another program that writes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The tables. The primary key of `results` is what makes a ticket's result the only one.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS tickets (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, client TEXT NOT NULL, key TEXT, digest TEXT NOT NULL,
    task TEXT NOT NULL, is_try INTEGER NOT NULL, is_check INTEGER NOT NULL, ticket TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT, created INTEGER NOT NULL, ended INTEGER, confirms TEXT REFERENCES tickets, UNIQUE (client, key)
) STRICT;
CREATE INDEX IF NOT EXISTS open_tickets ON tickets (state) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS tickets_of_clients ON tickets (client, task);
CREATE INDEX IF NOT EXISTS confirmations ON tickets (confirms) WHERE confirms IS NOT NULL;
CREATE TABLE IF NOT EXISTS attempts (
    ticket TEXT NOT NULL REFERENCES tickets, number INTEGER NOT NULL, worker TEXT NOT NULL, place TEXT NOT NULL,
    began INTEGER NOT NULL, lease INTEGER NOT NULL, ended INTEGER, died INTEGER NOT NULL DEFAULT 0, reason TEXT,
    PRIMARY KEY (ticket, number)
) STRICT;
CREATE INDEX IF NOT EXISTS open_attempts ON attempts (place) WHERE ended IS NULL;
CREATE INDEX IF NOT EXISTS attempts_of_places ON attempts (place, began);
CREATE TABLE IF NOT EXISTS results (ticket TEXT PRIMARY KEY REFERENCES tickets, result TEXT NOT NULL) STRICT;
";

pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let base = Connection::open(path)?;
    base.busy_timeout(PATIENCE)?;
    // Changing the journal does not wait for other programs that open the same new file.
    let mut tries = 0;
    while let Err(error) = base.pragma_update(None, "journal_mode", "WAL") {
        let is_busy = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        );
        tries += 1;
        if !is_busy || tries > 200 {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    base.pragma_update(None, "foreign_keys", true)?;
    base.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;"))?;
    Ok(base)
}

/// The ticket that a client's key names, or that asks for the same and is open; with the digest of what it asks for.
pub(super) fn known(
    base: &Connection,
    client: &str,
    key: Option<&str>,
    content: &str,
) -> rusqlite::Result<Option<(Ticket, String)>> {
    let query = "SELECT ticket, digest FROM tickets WHERE client = ?1 AND CASE WHEN ?2 IS NULL
         THEN digest = ?3 AND confirms IS NULL AND state IN ('queued', 'running') ELSE key = ?2 END";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
    let found = base
        .query_row(query, params![client, key, content], read)
        .optional()?;
    found
        .map(|(text, digest)| Ok((parsed(&text)?, digest)))
        .transpose()
}

pub(super) fn insert(
    base: &Connection,
    client: &str,
    key: Option<&str>,
    content: &str,
    asked: &Ticket,
    confirms: Option<&str>,
) -> rusqlite::Result<Ticket> {
    let number: i64 = base.query_row("SELECT COALESCE(MAX(number), 0) + 1 FROM tickets", [], |row| {
        row.get(0)
    })?;
    let now = Timestamp::now();
    let name = format!("{client}\0{number}\0{content}\0{}", now.as_nanosecond());
    let ticket = Ticket {
        id: digest(name.as_bytes())[..12].to_owned(),
        ..asked.clone()
    };
    let judgement = &ticket.judgement;
    base.execute(
        "INSERT INTO tickets (id, number, client, key, digest, task, is_try, is_check, ticket, state, created, confirms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'queued', ?10, ?11)",
        params![
            ticket.id,
            number,
            client,
            key,
            content,
            judgement.task,
            judgement.command.is_a_try() && confirms.is_none(),
            judgement.command == JudgementKind::Check,
            serde_json::to_string(&ticket).unwrap_or_default(),
            millis(now),
            confirms,
        ],
    )?;
    Ok(ticket)
}

/// Queues the second comparison of a ticket, unless it is one itself.
pub(super) fn confirm(base: &Connection, id: &str) -> rusqlite::Result<Option<Ticket>> {
    let (client, content, text, confirms): (String, String, String, Option<String>) = base.query_row(
        "SELECT client, digest, ticket, confirms FROM tickets WHERE id = ?1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    if confirms.is_some() {
        return Ok(None);
    }
    let first = parsed(&text)?;
    insert(base, &client, None, &content, &first, Some(id)).map(Some)
}

pub(super) fn end_attempt(
    base: &Connection,
    id: &str,
    attempt: u32,
    reason: &str,
    died: bool,
) -> rusqlite::Result<()> {
    let now = millis(Timestamp::now());
    let ended = base.execute(
        "UPDATE attempts SET ended = ?3, reason = ?4, died = ?5 WHERE ticket = ?1 AND number = ?2 AND ended IS NULL",
        params![id, attempt, now, reason, died],
    )?;
    if ended == 0 {
        return Ok(());
    }
    let mut query = base
        .prepare_cached("SELECT number, reason FROM attempts WHERE ticket = ?1 AND died ORDER BY number")?;
    let rows = query.query_map([id], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)))?;
    let dead: Vec<(u32, String)> = rows.collect::<Result<_, _>>()?;
    if dead.len() < MAX_DEAD_ATTEMPTS as usize {
        base.execute(
            "UPDATE tickets SET state = 'queued' WHERE id = ?1 AND state = 'running'",
            [id],
        )?;
        return Ok(());
    }
    let reasons: Vec<_> = dead
        .iter()
        .map(|(number, why)| format!("attempt {number}: {why}"))
        .collect();
    base.execute(
        "UPDATE tickets SET state = 'failed', ended = ?2, reason = ?3 WHERE id = ?1 AND state = 'running'",
        params![id, now, reasons.join("\n")],
    )?;
    Ok(())
}

/// How long a place rests after the second attempt in a row that died there; after each further one six times as long.
const REST: SignedDuration = SignedDuration::from_secs(10);

/// The longest that a place rests.
const MAX_REST: SignedDuration = SignedDuration::from_mins(10);

/// Until when a place rests, or rested, if the last attempts there died. One that was interrupted says nothing of its place.
pub(super) fn rest(base: &Connection, place: &str) -> rusqlite::Result<Option<Rest>> {
    let mut query = base.prepare_cached(
        "SELECT ended, died, reason FROM attempts WHERE place = ?1 AND ended IS NOT NULL AND (died OR reason IS NULL)
         ORDER BY began DESC LIMIT 6",
    )?;
    let rows = query.query_map([place], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, bool>(1)?,
            row.get::<_, Option<String>>(2)?,
        ))
    })?;
    let mut deaths = 0;
    let mut last = None;
    for row in rows {
        let (ended, died, reason) = row?;
        if !died {
            break;
        }
        deaths += 1;
        last.get_or_insert((timestamp(ended), reason.unwrap_or_default()));
    }
    Ok(last.filter(|_| deaths > 1).map(|(ended, reason)| Rest {
        deaths,
        reason,
        until: ended + (REST * 6_i32.pow(deaths - 2)).min(MAX_REST),
    }))
}

pub(super) fn status(base: &Connection, id: &str) -> rusqlite::Result<Option<Status>> {
    let read = |row: &rusqlite::Row<'_>| {
        let text: String = row.get(0)?;
        Ok(Status {
            id: id.to_owned(),
            client: row.get(1)?,
            judgement: parsed(&text)?.judgement,
            state: State::read(&row.get::<_, String>(2)?).unwrap_or(State::Failed),
            reason: row.get(3)?,
            created: timestamp(row.get(4)?),
            ended: row.get::<_, Option<i64>>(5)?.map(timestamp),
            attempts: Vec::new(),
            ahead: row.get(6)?,
            tries: row.get(7)?,
            result: result(row.get(8)?),
            confirmation: None,
        })
    };
    let query = "
        SELECT ticket, client, state, reason, created, ended,
            (SELECT COUNT(*) FROM tickets AS others WHERE others.state IN ('queued', 'running')
                AND others.number < tickets.number),
            (SELECT COUNT(*) FROM tickets AS others WHERE others.client = tickets.client AND others.task = tickets.task
                AND others.is_try AND others.number <= tickets.number),
            (SELECT result FROM results WHERE results.ticket = tickets.id)
        FROM tickets WHERE id = ?1";
    let Some(mut found) = base.query_row(query, [id], read).optional()? else {
        return Ok(None);
    };
    let mut query = base.prepare_cached(
        "SELECT number, worker, began, ended, reason FROM attempts WHERE ticket = ?1 ORDER BY number",
    )?;
    let rows = query.query_map([id], |row| {
        Ok(Attempt {
            number: row.get(0)?,
            worker: row.get(1)?,
            began: timestamp(row.get(2)?),
            ended: row.get::<_, Option<i64>>(3)?.map(timestamp),
            reason: row.get(4)?,
        })
    })?;
    found.attempts = rows.collect::<Result<_, _>>()?;
    let second = "SELECT id, state, (SELECT result FROM results WHERE results.ticket = tickets.id)
        FROM tickets WHERE confirms = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Confirmation {
            ticket: row.get(0)?,
            state: State::read(&row.get::<_, String>(1)?).unwrap_or(State::Failed),
            result: result(row.get(2)?),
        })
    };
    found.confirmation = base.query_row(second, [id], read).optional()?;
    Ok(Some(found))
}

fn result(text: Option<String>) -> Option<JobResult> {
    serde_json::from_str(&text?).ok()
}

pub(super) fn parsed(text: &str) -> rusqlite::Result<Ticket> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

pub(super) fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

fn timestamp(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or_default()
}
