//! The data types of the ledger: runs, records, and records as they are stored.

use std::fmt;

use jiff::Timestamp;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of a run: when it started (UTC) and six hexadecimal digits, as in `20260314-150926-a1b2c3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Accepts a name that a user typed; the ledger checks whether there is such a run.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name for a run started at `at`. `salt` distinguishes runs that start at the same instant.
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

/// The fixed inputs of a run; stored once, at its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunStart {
    /// Version of the program, with its commit if known.
    pub version: String,
    /// The round or tournament file, as given; the command, if it is one that judges kernels.
    pub file: String,
    /// Digest of all fixed inputs (criteria, pitches, suite, seeds, device); a run may be resumed if this is unchanged.
    pub digest: String,
    /// The environment: device, compilers, operating system, clocks.
    pub environment: Value,
}

/// A run as shown in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunSummary {
    /// Its name.
    pub id: RunId,
    /// When it started.
    pub started: Timestamp,
    /// When it ended; none while it runs or if it was killed.
    pub ended: Option<Timestamp>,
    /// Its fixed inputs.
    #[serde(flatten)]
    pub start: RunStart,
    /// Number of its records, including start and end.
    pub records: u64,
    /// Number of findings among them.
    pub findings: u64,
    /// Number of verdicts among them, of rounds and of commands that judge.
    pub verdicts: u64,
    /// Number of those verdicts that the model gave without a measurement.
    pub predicted: u64,
    /// The ledger that it was imported from, by the digest of that ledger's first record; none for a run of this ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A run began; written only by [`Ledger::start_run`](super::Ledger::start_run).
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
    /// Any other notable event.
    Notice,
    /// A contestant or a panellist was asked.
    Message,
    /// A command that judges kernels found this: `compare`, `judge`, `check` or `tune`.
    Judgement,
    /// Records of another ledger were added.
    Imported,
}

impl RecordKind {
    /// Every kind, in the order in which they occur in a run.
    pub const ALL: [Self; 11] = [
        Self::RunStarted,
        Self::RoundStarted,
        Self::Ranking,
        Self::Finding,
        Self::Verdict,
        Self::RoundEnded,
        Self::RunEnded,
        Self::Notice,
        Self::Message,
        Self::Judgement,
        Self::Imported,
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
            Self::Message => "message",
            Self::Judgement => "judgement",
            Self::Imported => "imported",
        }
    }
}

/// An event of a run, before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The run it belongs to.
    pub run: RunId,
    /// Its kind.
    pub kind: RecordKind,
    /// The round, if it belongs to one.
    pub round: Option<String>,
    /// The pitch, if it belongs to one.
    pub pitch: Option<String>,
    /// The gate, if it belongs to one.
    pub gate: Option<String>,
    /// The evidence. JSON has no NaN or infinity: `serde_json` has already turned them into null.
    pub body: Value,
}

/// A record as it is stored; also one line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its sequence number in the ledger: 1, 2, 3 … over all runs.
    pub sequence: u64,
    /// When it was stored.
    pub at: Timestamp,
    /// The recorded event.
    #[serde(flatten)]
    pub record: Record,
    /// Its link of the hash chain, 64 hexadecimal digits.
    pub digest: String,
    /// The ledger that it was imported from, and in which it has its number: the digest of that ledger's first record. None for
    /// a record of this ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
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
