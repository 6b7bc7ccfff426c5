//! Attempts at tickets: who leases one, renews the lease, and ends it; and places where attempts die.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::Queue;
use super::tables::{end_attempt, millis, parsed, rest};
use crate::error::QueueError;
use crate::ticket::Ticket;
use crate::worker::has_ended;

/// How long a worker may be silent before its attempt counts as dead.
pub const LEASE: SignedDuration = SignedDuration::from_secs(30);

/// How long a ticket waits after an attempt that died: what killed it may pass, or another place take it.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// A place that is given no ticket for a while, since attempts die there one after another: else one broken machine would fail all
/// tickets that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// How many died in a row.
    pub deaths: u32,
    /// Why the last one did.
    pub reason: String,
    /// When it is given a ticket again.
    pub until: Timestamp,
}

impl Queue {
    /// Takes the next ticket for a place where one judgement runs at a time, with the number of the attempt; none if none waits, one
    /// runs there, or the place rests. Checks come first, then the client that has waited longest, then the oldest ticket.
    ///
    /// # Errors
    /// If the queue cannot be read or written.
    pub fn lease(
        &self,
        worker: &str,
        place: &str,
        now: Timestamp,
    ) -> Result<Option<(Ticket, u32)>, QueueError> {
        self.expire(now)?;
        let leased = self.write(|base| {
            let busy = "SELECT 1 FROM attempts WHERE place = ?1 AND ended IS NULL";
            if base.query_row(busy, [place], |_| Ok(())).optional()?.is_some() {
                return Ok(None);
            }
            if rest(base, place)?.is_some_and(|rest| rest.until > now) {
                return Ok(None);
            }
            let next = "
                SELECT ticket, (SELECT COUNT(*) FROM attempts WHERE attempts.ticket = tickets.id) FROM tickets
                WHERE state = 'queued' AND NOT EXISTS (
                    SELECT 1 FROM attempts WHERE attempts.ticket = tickets.id AND died AND ended > ?1
                )
                ORDER BY is_check DESC, (
                    SELECT MAX(began) FROM attempts JOIN tickets AS others ON others.id = attempts.ticket
                    WHERE others.client = tickets.client
                ) ASC NULLS FIRST, number
                LIMIT 1";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?));
            let Some((text, earlier)) = base.query_row(next, [millis(now - PAUSE)], read).optional()? else {
                return Ok(None);
            };
            let ticket = parsed(&text)?;
            base.execute(
                "INSERT INTO attempts (ticket, number, worker, place, began, lease) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![ticket.id, earlier + 1, worker, place, millis(now), millis(now + LEASE)],
            )?;
            base.execute("UPDATE tickets SET state = 'running' WHERE id = ?1", [&ticket.id])?;
            Ok(Some((ticket, earlier + 1)))
        })?;
        if let Some((ticket, attempt)) = &leased
            && let Err(error) = self.write_ticket(ticket)
        {
            self.give_back(&ticket.id, *attempt)?;
            return Err(error);
        }
        Ok(leased)
    }

    /// Whether a place is given no tickets now, and why.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn rest(&self, place: &str, now: Timestamp) -> Result<Option<Rest>, QueueError> {
        let found = self.read(|base| rest(base, place))?;
        Ok(found.filter(|rest| rest.until > now))
    }

    /// Says that an attempt goes on. False if its ticket is not to be run any more.
    ///
    /// # Errors
    /// If the queue cannot be written.
    pub fn renew(&self, id: &str, attempt: u32, now: Timestamp) -> Result<bool, QueueError> {
        self.write(|base| {
            let renewed = base.execute(
                "UPDATE attempts SET lease = ?3 WHERE ticket = ?1 AND number = ?2 AND ended IS NULL
                 AND EXISTS (SELECT 1 FROM tickets WHERE id = ?1 AND state = 'running')",
                params![id, attempt, millis(now + LEASE)],
            )?;
            Ok(renewed == 1)
        })
    }

    /// Ends an attempt without a result: its ticket waits again, or fails if too many attempts died. One that was interrupted from
    /// outside did not die.
    ///
    /// # Errors
    /// If the queue cannot be written.
    pub fn end_attempt(&self, id: &str, attempt: u32, reason: &str, died: bool) -> Result<(), QueueError> {
        self.write(|base| end_attempt(base, id, attempt, reason, died))
    }

    /// Takes an attempt back that did not begin: its ticket waits again, as if it had never been taken.
    ///
    /// # Errors
    /// If the queue cannot be written.
    pub fn give_back(&self, id: &str, attempt: u32) -> Result<(), QueueError> {
        self.write(|base| {
            base.execute(
                "DELETE FROM attempts WHERE ticket = ?1 AND number = ?2 AND ended IS NULL",
                params![id, attempt],
            )?;
            base.execute(
                "UPDATE tickets SET state = 'queued' WHERE id = ?1 AND state = 'running'",
                [id],
            )?;
            Ok(())
        })
    }

    /// Ends the attempts whose workers are silent, or have ended on this machine. What they had published counts, and what their jobs
    /// still publish counts too.
    pub(super) fn expire(&self, now: Timestamp) -> Result<(), QueueError> {
        let open: Vec<(String, u32, String, i64)> = self.read(|base| {
            let mut query = base
                .prepare_cached("SELECT ticket, number, worker, lease FROM attempts WHERE ended IS NULL")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect()
        })?;
        for (id, attempt, worker, lease) in open {
            let is_silent = lease < millis(now);
            if !is_silent && !has_ended(&worker) {
                continue;
            }
            match self.published(&id) {
                Some(result) => {
                    self.record(attempt, &result)?;
                }
                // Its job may be at work: the next attempt waits for it, or takes it over.
                None if has_ended(&worker) => {
                    self.end_attempt(&id, attempt, "its worker has ended", false)?;
                }
                None => {
                    let reason = format!("its worker was not heard of for {} s", LEASE.as_secs());
                    self.end_attempt(&id, attempt, &reason, true)?;
                }
            }
        }
        Ok(())
    }
}
