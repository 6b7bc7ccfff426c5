//! Reading a ledger: lists of runs and records, the state for resuming a run, and the export.

use std::cmp::Reverse;
use std::io::Write;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql};
use serde::de::DeserializeOwned;

use super::judgement::JudgementRecord;
use super::record::{Entry, Record, RecordKind, RunId, RunStart, RunSummary};
use super::{Ledger, LedgerError};

/// The columns that [`entry`] reads.
const ENTRY: &str =
    "SELECT sequence, at, run, kind, round, pitch, gate, body, digest, nullif(origin, '') FROM every_record";

/// Records that are read at a time for an export.
const AT_ONCE: u64 = 256;

/// Makes the views of the own runs and records and the imported ones together. The own ones have the empty origin; the place of
/// a record in the order of all is its number, or the number of the record that brought it.
pub(super) fn make_views(connection: &Connection) -> rusqlite::Result<()> {
    let has_imports: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'imported_record')",
        [],
        |row| row.get(0),
    )?;
    let (runs, records) = if has_imports {
        (
            "UNION ALL SELECT id, started_at, version, file, digest, environment, origin FROM main.imported_run",
            "UNION ALL SELECT sequence, at, run, kind, round, pitch, gate, body, digest, origin, link FROM main.imported_record",
        )
    } else {
        ("", "")
    };
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.execute_batch(&format!(
        "CREATE TEMP VIEW every_run AS
             SELECT id, started_at, version, file, digest, environment, '' AS origin FROM main.run {runs};
         CREATE TEMP VIEW every_record AS
             SELECT sequence, at, run, kind, round, pitch, gate, body, digest, '' AS origin, sequence AS place
             FROM main.record {records};"
    ))
}

impl Ledger {
    /// Every run, the newest first (by their order in the ledger: clocks may be set back).
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn runs(&self) -> Result<Vec<RunSummary>, LedgerError> {
        self.newest_runs(usize::MAX)
    }

    /// The newest runs, at most this many, the newest first.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn newest_runs(&self, most: usize) -> Result<Vec<RunSummary>, LedgerError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(|connection| {
            // Apart, since only the own ones are in the order of an index.
            let mut newest = Vec::new();
            for source in [
                "SELECT run, sequence, sequence FROM main.record WHERE kind = 'run-started' ORDER BY sequence DESC LIMIT ?1",
                "SELECT run, place, sequence FROM every_record WHERE kind = 'run-started' AND origin > ''
                 ORDER BY place DESC, sequence DESC LIMIT ?1",
            ] {
                let mut statement = connection.prepare_cached(source)?;
                let rows = statement.query_map([most], |row| {
                    let place: (u64, u64) = (row.get(1)?, row.get(2)?);
                    Ok((place, row.get::<_, RunId>(0)?))
                })?;
                newest.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
            }
            newest.sort_by_key(|(place, _)| Reverse(*place));
            let newest = newest.iter().take(usize::try_from(most).unwrap_or(usize::MAX));
            newest.map(|(_, run)| summary(connection, run)).collect()
        })
    }

    /// The names of runs that begin with a text, at most two of them.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn runs_named(&self, beginning: &str) -> Result<Vec<RunId>, LedgerError> {
        let end = format!("{beginning}{}", char::MAX);
        self.query(
            "SELECT id FROM every_run WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 2",
            &[&beginning, &end],
            |row| row.get(0),
        )
    }

    /// The newest run of a round or a tournament, which no command that judges has made.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn newest_tournament(&self) -> Result<Option<RunId>, LedgerError> {
        let found = self.query(
            "SELECT run, place, sequence FROM every_record AS start WHERE kind = 'run-started' AND NOT EXISTS (
                 SELECT 1 FROM every_record AS other WHERE other.run = start.run AND other.kind IN ('judgement', 'imported'))
             ORDER BY place DESC, sequence DESC LIMIT 1",
            &[],
            |row| row.get(0),
        )?;
        Ok(found.into_iter().next())
    }

    /// A run in short.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn run(&self, run: &RunId) -> Result<RunSummary, LedgerError> {
        self.require(run)?;
        self.read(|connection| summary(connection, run))
    }

    /// What a command found, as the last record of its run says; none if the run is of a round, or nothing was found yet.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn judgement(&self, run: &RunId) -> Result<Option<JudgementRecord>, LedgerError> {
        self.require(run)?;
        let found = self.query(
            "SELECT body FROM every_record WHERE run = ?1 AND kind = 'judgement' ORDER BY sequence DESC LIMIT 1",
            &[run],
            |row| json(0, row.get(0)?),
        )?;
        Ok(found.into_iter().next())
    }

    /// Every record of a run, in order.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn records(&self, run: &RunId) -> Result<Vec<Entry>, LedgerError> {
        self.require(run)?;
        let statement = format!("{ENTRY} WHERE run = ?1 ORDER BY sequence");
        self.query(&statement, &[run], entry)
    }

    /// The findings of a run, in order, which a resumed run does not repeat.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn findings(&self, run: &RunId) -> Result<Vec<Entry>, LedgerError> {
        self.require(run)?;
        let statement = format!("{ENTRY} WHERE run = ?1 AND kind = ?2 ORDER BY sequence");
        self.query(&statement, &[run, &RecordKind::Finding], entry)
    }

    /// The verdicts of all rounds, in order, by which forecasts are scored.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn verdicts(&self) -> Result<Vec<Entry>, LedgerError> {
        self.verdicts_before(u64::MAX)
    }

    /// Those that were in the ledger before its record with this number.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn verdicts_before(&self, sequence: u64) -> Result<Vec<Entry>, LedgerError> {
        let before = i64::try_from(sequence).unwrap_or(i64::MAX);
        let statement = format!("{ENTRY} WHERE kind = ?1 AND place < ?2 ORDER BY place, sequence");
        self.query(&statement, &[&RecordKind::Verdict, &before], entry)
    }

    /// The record with this sequence number, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn record(&self, sequence: u64) -> Result<Option<Entry>, LedgerError> {
        // SQLite's integers are signed 64-bit, so no record has a larger number.
        let Ok(sequence) = i64::try_from(sequence) else {
            return Ok(None);
        };
        let statement = format!("{ENTRY} WHERE sequence = ?1 AND origin = ''");
        let found = self.query(&statement, &[&sequence], entry)?;
        Ok(found.into_iter().next())
    }

    /// The newest run with the same fixed inputs (see [`RunStart::digest`]) that has not ended.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn last_unfinished_run(&self, digest: &str) -> Result<Option<RunId>, LedgerError> {
        let found = self.query(
            "SELECT run.id FROM run JOIN record AS start ON start.run = run.id AND start.kind = ?2
             WHERE run.digest = ?1
               AND NOT EXISTS (SELECT 1 FROM record WHERE record.run = run.id AND record.kind = ?3)
             ORDER BY start.sequence DESC LIMIT 1",
            &[&digest, &RecordKind::RunStarted, &RecordKind::RunEnded],
            |row| row.get(0),
        )?;
        Ok(found.into_iter().next())
    }

    /// Writes the records of a run, or of all runs of this ledger, as JSON lines: one [`Entry`] on each line, in order.
    ///
    /// # Errors
    /// If there is no such run, the file cannot be read or is inconsistent, or `writer` fails.
    pub fn export(&self, mut writer: impl Write, run: Option<&RunId>) -> Result<(), LedgerError> {
        if let Some(run) = run {
            self.require(run)?;
        }
        let of = match run {
            Some(_) => "run = ?3",
            None => "origin = '' AND ?3 IS NULL",
        };
        let statement = format!("{ENTRY} WHERE sequence > ?1 AND {of} ORDER BY sequence LIMIT ?2");
        let mut last = 0;
        loop {
            let entries = self.query(&statement, &[&last, &AT_ONCE, &run], entry)?;
            for entry in &entries {
                serde_json::to_writer(&mut writer, entry)
                    .map_err(std::io::Error::from)
                    .and_then(|()| writer.write_all(b"\n"))
                    .map_err(|source| LedgerError::Export { source })?;
            }
            match entries.last() {
                Some(entry) => last = entry.sequence,
                None => break,
            }
        }
        writer.flush().map_err(|source| LedgerError::Export { source })
    }

    fn require(&self, run: &RunId) -> Result<(), LedgerError> {
        let found = self.query("SELECT 1 FROM every_run WHERE id = ?1", &[run], |_| Ok(()))?;
        match found.is_empty() {
            false => Ok(()),
            true => Err(LedgerError::UnknownRun {
                path: self.path.clone(),
                run: run.clone(),
            }),
        }
    }

    pub(super) fn query<T>(
        &self,
        statement: &str,
        parameters: &[&dyn ToSql],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        self.read(|connection| {
            connection
                .prepare_cached(statement)?
                .query_map(parameters, &read)?
                .collect()
        })
    }
}

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        sequence: row.get(0)?,
        at: timestamp(1, row.get(1)?)?,
        record: Record {
            run: row.get(2)?,
            kind: row.get(3)?,
            round: row.get(4)?,
            pitch: row.get(5)?,
            gate: row.get(6)?,
            body: json(7, row.get(7)?)?,
        },
        digest: row.get(8)?,
        origin: row.get(9)?,
    })
}

fn summary(connection: &Connection, run: &RunId) -> rusqlite::Result<RunSummary> {
    let (started, start, origin) = connection
        .prepare_cached(
            "SELECT started_at, version, file, digest, environment, nullif(origin, '') FROM every_run WHERE id = ?1",
        )?
        .query_row([run], |row| {
            let start = RunStart {
                version: row.get(1)?,
                file: row.get(2)?,
                digest: row.get(3)?,
                environment: json(4, row.get(4)?)?,
            };
            Ok((timestamp(0, row.get(0)?)?, start, row.get(5)?))
        })?;
    connection
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE kind = 'finding'), count(*) FILTER (WHERE kind IN ('verdict', 'judgement')),
                    count(*) FILTER (WHERE kind = 'verdict' AND json_extract(body, '$.predicted')),
                    max(at) FILTER (WHERE kind = 'run-ended')
             FROM every_record WHERE run = ?1",
        )?
        .query_row([run], |row| {
            Ok(RunSummary {
                id: run.clone(),
                started,
                start: start.clone(),
                records: row.get(0)?,
                findings: row.get(1)?,
                verdicts: row.get(2)?,
                predicted: row.get(3)?,
                ended: row
                    .get::<_, Option<String>>(4)?
                    .map(|text| timestamp(4, text))
                    .transpose()?,
                origin,
            })
        })
}

pub(super) fn timestamp(column: usize, text: String) -> rusqlite::Result<Timestamp> {
    text.parse()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

fn json<T: DeserializeOwned>(column: usize, text: String) -> rusqlite::Result<T> {
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}
