//! The words of the ledger: runs, records, and records as they are stored.

use std::fmt;

use jiff::Timestamp;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of a run: when it started (UTC) and six hexadecimal digits, as in `20260314-150926-a1b2c3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Takes a name as somebody typed it; whether there is such a run is for the ledger to say.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name for a run started at `at`. `salt` tells apart runs that start at the same instant.
    pub(super) fn for_start(at: Timestamp, salt: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&at.as_nanosecond().to_le_bytes());
        for part in salt {
            hasher.update(part);
        }
        let hexadecimal = hasher.finalize().to_hex();
        Self(format!("{}-{}", at.strftime("%Y%m%d-%H%M%S"), &hexadecimal[..6]))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a run is fixed by; stored once, as it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStart {
    /// Version of the program, with its commit where known.
    pub version: String,
    /// The round or tournament file, as it was given.
    pub file: String,
    /// Digest of everything that the run was fixed by (criteria, pitches, suite, seeds, device); a run may be
    /// resumed when this is the same.
    pub digest: String,
    /// What it runs on: device, compilers, operating system, clocks.
    pub environment: Value,
}

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its name.
    pub id: RunId,
    /// When it started.
    pub started: Timestamp,
    /// When it ended; none while it runs or after it was killed.
    pub ended: Option<Timestamp>,
    /// What it was fixed by.
    #[serde(flatten)]
    pub start: RunStart,
    /// Number of its records, the start and the end among them.
    pub records: u64,
    /// Number of findings among them.
    pub findings: u64,
    /// Number of verdicts among them.
    pub verdicts: u64,
    /// Of these, given by the model and not measured.
    pub predicted: u64,
}

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A run began; written by [`Ledger::start_run`](super::Ledger::start_run) alone.
    RunStarted,
    /// A round began, with its criteria.
    RoundStarted,
    /// The panel ranked the pitches.
    Ranking,
    /// A gate examined a candidate.
    Finding,
    /// A pitch got its verdict.
    Verdict,
    /// A round ended.
    RoundEnded,
    /// The run ended; nothing may follow it.
    RunEnded,
    /// Something worth knowing that is none of these.
    Notice,
}

impl RecordKind {
    /// Every kind, in the order in which a run meets them.
    pub const ALL: [Self; 8] = [
        Self::RunStarted,
        Self::RoundStarted,
        Self::Ranking,
        Self::Finding,
        Self::Verdict,
        Self::RoundEnded,
        Self::RunEnded,
        Self::Notice,
    ];

    /// The kind as it is stored and exported.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunStarted => "run-started",
            Self::RoundStarted => "round-started",
            Self::Ranking => "ranking",
            Self::Finding => "finding",
            Self::Verdict => "verdict",
            Self::RoundEnded => "round-ended",
            Self::RunEnded => "run-ended",
            Self::Notice => "notice",
        }
    }
}

/// One thing that happened in a run, before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The run it belongs to.
    pub run: RunId,
    /// What it tells of.
    pub kind: RecordKind,
    /// The round, where it belongs to one.
    pub round: Option<String>,
    /// The pitch, where it belongs to one.
    pub pitch: Option<String>,
    /// The gate, where it belongs to one.
    pub gate: Option<String>,
    /// The evidence. JSON has no NaN and no infinity: `serde_json` turns them into null before they get here.
    pub body: Value,
}

/// A record as it is stored; also one line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in the ledger: 1, 2, 3 … over all runs.
    pub sequence: u64,
    /// When it was stored.
    pub at: Timestamp,
    /// What was recorded.
    #[serde(flatten)]
    pub record: Record,
    /// Its link of the hash chain, 64 hexadecimal digits.
    pub digest: String,
}

impl ToSql for RunId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for RunId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value).map(Self)
    }
}

impl ToSql for RecordKind {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.name()))
    }
}

impl FromSql for RecordKind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| FromSqlError::Other(format!("no kind of record is called {name}").into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_same_name_in_the_database_and_in_json() {
        for kind in RecordKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(
                RecordKind::column_result(ValueRef::Text(kind.name().as_bytes())).unwrap(),
                kind
            );
        }
        assert!(RecordKind::column_result(ValueRef::Text(b"rumour")).is_err());
    }

    #[test]
    fn run_ids_say_when_and_differ_by_their_salt() {
        let at: Timestamp = "2026-03-14T15:09:26.5Z".parse().unwrap();
        let first = RunId::for_start(at, &[b"0"]);
        let second = RunId::for_start(at, &[b"1"]);
        assert!(first.as_str().starts_with("20260314-150926-"));
        assert_eq!(first.as_str().len(), "20260314-150926-a1b2c3".len());
        assert_ne!(first, second);
    }
}
