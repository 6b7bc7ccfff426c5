//! Records of other ledgers: each chain stays as it was written there, and a record of the own chain says up to where.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::{RecordKind, RunStart};
use super::{Ledger, LedgerError, Verification, begin, note};

/// How many records are read from the other ledger at a time.
const AT_ONCE: u64 = 256;

/// Records of another ledger that were added: the body of a record of the kind `imported`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Which ledger: the digest of its first record.
    pub origin: String,
    /// The first record that was added.
    pub from: u64,
    /// The last one; all records of that ledger up to this one are here.
    pub to: u64,
    /// The digest of the last one.
    pub head: String,
}

/// A record with everything as it is stored.
struct Raw {
    sequence: u64,
    fields: [Option<String>; 8],
}

impl Ledger {
    /// Adds the records of another ledger, and those that it imported itself, which are not here yet. Does nothing a second
    /// time.
    ///
    /// # Errors
    /// If the other ledger's chain is broken, if either ledger is a copy of the other that went on by itself, or if one of them
    /// cannot be read or written. Nothing is added then.
    pub fn import(&self, other: &Self) -> Result<Vec<Imported>, LedgerError> {
        other.require_sound()?;
        let mut news = Vec::new();
        let own = self.read(|connection| link_at(connection, "", 1))?;
        for (name, origin, last) in other.read(chains)? {
            let here = if own.as_ref() == Some(&origin) {
                ""
            } else {
                &origin
            };
            let known = self.read(|connection| length(connection, here))?;
            let common = known.min(last);
            let agree = self.read(|connection| link_at(connection, here, common))?
                == other.read(|connection| link_at(connection, &name, common))?;
            // The own chain grows by its own records only.
            if !agree || (here.is_empty() && last > known) {
                return Err(LedgerError::Forked {
                    path: self.path.clone(),
                    other: other.path.clone(),
                    sequence: if agree { known + 1 } else { common },
                });
            }
            if let Some(head) = other.read(|connection| link_at(connection, &name, last))?
                && last > known
            {
                let (from, to) = (known + 1, last);
                news.push((
                    name,
                    Imported {
                        origin,
                        from,
                        to,
                        head,
                    },
                ));
            }
        }
        if !news.is_empty() {
            self.add(other, &news)?;
        }
        Ok(news.into_iter().map(|(_, imported)| imported).collect())
    }

    /// Fails unless every record, of every chain, is as it was written.
    fn require_sound(&self) -> Result<(), LedgerError> {
        let own = [(String::new(), self.verify()?)];
        for (_, verification) in own.into_iter().chain(self.verify_imported()?) {
            if let Verification::Broken { sequence, breach } = verification {
                return Err(LedgerError::Damaged {
                    path: self.path.clone(),
                    detail: format!("record {sequence}: {breach}"),
                });
            }
        }
        Ok(())
    }

    fn add(&self, other: &Self, news: &[(String, Imported)]) -> Result<(), LedgerError> {
        let start = RunStart {
            version: String::new(),
            file: format!("ledger import {}", other.path.display()),
            digest: String::new(),
            environment: Value::Null,
        };
        let mut failed = None;
        let done = self.transact(|transaction| {
            let run = begin(transaction, &start)?;
            for (name, imported) in news {
                let link = note(
                    transaction,
                    Timestamp::now(),
                    &run,
                    RecordKind::Imported,
                    json!(imported),
                )?;
                for from in (imported.from..=imported.to).step_by(AT_ONCE as usize) {
                    let to = imported.to.min(from + AT_ONCE - 1);
                    let copied = other.read(|connection| {
                        Ok((
                            runs(connection, name, from, to)?,
                            raws(connection, name, from, to)?,
                        ))
                    });
                    match copied {
                        Ok((runs, raws)) => copy(transaction, &imported.origin, link, &runs, &raws)?,
                        Err(error) => {
                            failed = Some(error);
                            return Err(rusqlite::Error::QueryReturnedNoRows);
                        }
                    }
                }
            }
            note(
                transaction,
                Timestamp::now(),
                &run,
                RecordKind::RunEnded,
                json!({}),
            )
            .map(drop)
        });
        failed.map_or(done, Err)
    }
}

/// The chains of a ledger: where each is stored, its origin, and its last record. The own one is stored under the empty name.
fn chains(connection: &Connection) -> rusqlite::Result<Vec<(String, String, u64)>> {
    connection
        .prepare(
            "SELECT origin, (SELECT digest FROM every_record AS first WHERE first.origin = each.origin AND first.sequence = 1),
                    max(sequence)
             FROM every_record AS each GROUP BY origin ORDER BY origin",
        )?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

/// The number of the last record of a chain; 0 if there is none.
fn length(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    let statement = "SELECT coalesce(max(sequence), 0) FROM every_record WHERE origin = ?1";
    connection.query_row(statement, [name], |row| row.get(0))
}

/// The digest of a record of a chain, if there is such a record.
fn link_at(connection: &Connection, name: &str, sequence: u64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT digest FROM every_record WHERE origin = ?1 AND sequence = ?2")?
        .query_row(params![name, sequence], |row| row.get(0))
        .optional()
}

/// These records of a chain.
fn raws(connection: &Connection, name: &str, from: u64, to: u64) -> rusqlite::Result<Vec<Raw>> {
    connection
        .prepare_cached(
            "SELECT sequence, run, at, kind, round, pitch, gate, body, digest FROM every_record
             WHERE origin = ?1 AND sequence BETWEEN ?2 AND ?3 ORDER BY sequence",
        )?
        .query_map(params![name, from, to], |row| {
            let mut fields: [Option<String>; 8] = Default::default();
            for (index, field) in fields.iter_mut().enumerate() {
                *field = row.get(index + 1)?;
            }
            Ok(Raw {
                sequence: row.get(0)?,
                fields,
            })
        })?
        .collect()
}

/// The rows of the runs that these records of a chain start.
fn runs(connection: &Connection, name: &str, from: u64, to: u64) -> rusqlite::Result<Vec<[String; 6]>> {
    connection
        .prepare_cached(
            "SELECT id, started_at, version, file, every_run.digest, environment
             FROM every_record JOIN every_run ON every_run.id = every_record.run AND every_run.origin = ?1
             WHERE every_record.origin = ?1 AND sequence BETWEEN ?2 AND ?3 AND kind = 'run-started' ORDER BY sequence",
        )?
        .query_map(params![name, from, to], |row| {
            let mut fields: [String; 6] = Default::default();
            for (index, field) in fields.iter_mut().enumerate() {
                *field = row.get(index)?;
            }
            Ok(fields)
        })?
        .collect()
}

fn copy(
    transaction: &Transaction<'_>,
    origin: &str,
    link: u64,
    runs: &[[String; 6]],
    raws: &[Raw],
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO imported_run (origin, id, started_at, version, file, digest, environment)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for [id, started, version, file, digest, environment] in runs {
        statement.execute(params![origin, id, started, version, file, digest, environment])?;
    }
    let mut statement = transaction.prepare_cached(
        "INSERT INTO imported_record (origin, link, sequence, run, at, kind, round, pitch, gate, body, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for Raw { sequence, fields } in raws {
        let [run, at, kind, round, pitch, gate, body, digest] = fields;
        statement.execute(params![
            origin, link, sequence, run, at, kind, round, pitch, gate, body, digest
        ])?;
    }
    Ok(())
}
