//! Reading a ledger: lists of runs and records, the state for resuming a run, and the export.

use std::io::Write;

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Params, Row, params};
use serde::de::DeserializeOwned;

use super::record::{Entry, Record, RecordKind, RunId, RunStart, RunSummary};
use super::{Ledger, LedgerError, ended};

/// The columns that [`entry`] reads.
const ENTRY: &str = "SELECT sequence, at, run, kind, round, pitch, gate, body, digest FROM record";

impl Ledger {
    /// Every run, the newest first (by their order in the ledger: clocks may be set back).
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn runs(&self) -> Result<Vec<RunSummary>, LedgerError> {
        self.query(
            "SELECT id, started_at, version, file, run.digest, environment, count(*),
                    count(*) FILTER (WHERE kind = 'finding'), count(*) FILTER (WHERE kind = 'verdict'),
                    max(at) FILTER (WHERE kind = 'run-ended'),
                    count(*) FILTER (WHERE kind = 'verdict' AND json_extract(body, '$.predicted'))
             FROM run JOIN record ON record.run = run.id
             GROUP BY id ORDER BY min(sequence) DESC",
            [],
            summary,
        )
    }

    /// Every record of a run, in order.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn records(&self, run: &RunId) -> Result<Vec<Entry>, LedgerError> {
        self.require(run)?;
        self.query(
            &format!("{ENTRY} WHERE run = ?1 ORDER BY sequence"),
            params![run],
            entry,
        )
    }

    /// The findings of a run, in order, which a resumed run does not repeat.
    ///
    /// # Errors
    /// If there is no such run, or the file cannot be read or is inconsistent.
    pub fn findings(&self, run: &RunId) -> Result<Vec<Entry>, LedgerError> {
        self.require(run)?;
        let statement = format!("{ENTRY} WHERE run = ?1 AND kind = ?2 ORDER BY sequence");
        self.query(&statement, params![run, RecordKind::Finding], entry)
    }

    /// The verdicts of all runs, in order, by which forecasts are scored.
    ///
    /// # Errors
    /// If the file cannot be read or is inconsistent.
    pub fn verdicts(&self) -> Result<Vec<Entry>, LedgerError> {
        let statement = format!("{ENTRY} WHERE kind = ?1 ORDER BY sequence");
        self.query(&statement, [RecordKind::Verdict], entry)
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
        let found = self.query(&format!("{ENTRY} WHERE sequence = ?1"), [sequence], entry)?;
        Ok(found.into_iter().next())
    }

    /// The newest run with the same fixed inputs (see [`RunStart::digest`]) that has not ended.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn last_unfinished_run(&self, digest: &str) -> Result<Option<RunId>, LedgerError> {
        self.connection
            .query_row(
                "SELECT run.id FROM run JOIN record AS start ON start.run = run.id AND start.kind = ?2
                 WHERE run.digest = ?1
                   AND NOT EXISTS (SELECT 1 FROM record WHERE record.run = run.id AND record.kind = ?3)
                 ORDER BY start.sequence DESC LIMIT 1",
                params![digest, RecordKind::RunStarted, RecordKind::RunEnded],
                |row| row.get(0),
            )
            .optional()
            .map_err(|error| self.failure(error))
    }

    /// Writes the records of a run, or of all runs, as JSON lines: one [`Entry`] on each line, in order.
    ///
    /// # Errors
    /// If there is no such run, the file cannot be read or is inconsistent, or `writer` fails.
    pub fn export(&self, mut writer: impl Write, run: Option<&RunId>) -> Result<(), LedgerError> {
        if let Some(run) = run {
            self.require(run)?;
        }
        let failed = |error| self.failure(error);
        let mut statement = self
            .connection
            .prepare(&format!("{ENTRY} WHERE ?1 IS NULL OR run = ?1 ORDER BY sequence"))
            .map_err(failed)?;
        for entry in statement.query_map([run], entry).map_err(failed)? {
            serde_json::to_writer(&mut writer, &entry.map_err(failed)?)
                .map_err(std::io::Error::from)
                .and_then(|()| writer.write_all(b"\n"))
                .map_err(|source| LedgerError::Export { source })?;
        }
        writer.flush().map_err(|source| LedgerError::Export { source })
    }

    fn require(&self, run: &RunId) -> Result<(), LedgerError> {
        match ended(&self.connection, run).map_err(|error| self.failure(error))? {
            Some(_) => Ok(()),
            None => Err(LedgerError::UnknownRun {
                path: self.path.clone(),
                run: run.clone(),
            }),
        }
    }

    fn query<T>(
        &self,
        statement: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let query = || -> rusqlite::Result<_> {
            self.connection
                .prepare_cached(statement)?
                .query_map(parameters, read)?
                .collect()
        };
        query().map_err(|error| self.failure(error))
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
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
    })
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    Ok(RunSummary {
        id: row.get(0)?,
        started: timestamp(1, row.get(1)?)?,
        start: RunStart {
            version: row.get(2)?,
            file: row.get(3)?,
            digest: row.get(4)?,
            environment: json(5, row.get(5)?)?,
        },
        records: row.get(6)?,
        findings: row.get(7)?,
        verdicts: row.get(8)?,
        predicted: row.get(10)?,
        ended: row
            .get::<_, Option<String>>(9)?
            .map(|text| timestamp(9, text))
            .transpose()?,
    })
}

fn timestamp(column: usize, text: String) -> rusqlite::Result<Timestamp> {
    text.parse()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

fn json<T: DeserializeOwned>(column: usize, text: String) -> rusqlite::Result<T> {
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}
