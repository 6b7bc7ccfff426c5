//! The hash chain: each record's digest covers the record and the digest before it, so that a change, a removal or an
//! insertion anywhere but at the very end invalidates every later digest.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;

use super::record::{RecordKind, RunStart};

/// Domain separation: sets these digests apart from every other use of BLAKE3.
const CONTEXT: &str = "gauntlet ledger 2026 schema 1 chain of records";

/// The result of a walk along the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Every record is as it was written.
    Intact {
        /// Number of records.
        records: u64,
        /// Digest of the last record; empty for an empty ledger. A copy kept elsewhere detects a ledger that was
        /// rewritten from the start.
        head: String,
    },
    /// Something was changed.
    Broken {
        /// The first record that does not match.
        sequence: u64,
        /// The fault.
        breach: Breach,
    },
}

/// How a record differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// It existed once and is missing.
    Missing,
    /// It, or its link to the record before it, was changed.
    Altered,
    /// It starts a run, and the table of runs disagrees with it.
    RunAltered,
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "the record is missing",
            Self::Altered => "the record is not what was written",
            Self::RunAltered => "the table of runs differs from the record that started the run",
        })
    }
}

/// The fields that a link of the chain covers, as stored.
pub(super) struct Link<'a> {
    pub sequence: u64,
    pub run: &'a str,
    pub at: &'a str,
    pub kind: &'a str,
    pub round: Option<&'a str>,
    pub pitch: Option<&'a str>,
    pub gate: Option<&'a str>,
    pub body: &'a str,
}

impl Link<'_> {
    /// BLAKE3 over the previous digest and all fields, each prefixed with its length so that no two records give the
    /// same bytes; an absent field differs from an empty one.
    pub(super) fn digest(&self, previous: &str) -> String {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        let sequence = self.sequence.to_string();
        let fields = [
            Some(previous),
            Some(&sequence),
            Some(self.run),
            Some(self.at),
            Some(self.kind),
        ];
        for field in fields
            .into_iter()
            .chain([self.round, self.pitch, self.gate, Some(self.body)])
        {
            hasher.update(&[u8::from(field.is_some())]);
            if let Some(text) = field {
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The highest sequence number ever given and the digest of the last record; 0 and an empty digest for an empty ledger.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<(u64, String)> {
    // Not the last record's number: if records were cut off at the end, the gap must stay visible.
    connection
        .prepare_cached(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'record'), 0),
                    coalesce((SELECT digest FROM record ORDER BY sequence DESC LIMIT 1), '')",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Walks the own chain from the first record to the highest number ever given.
pub(super) fn verify(connection: &Connection) -> rusqlite::Result<Verification> {
    // One transaction, so that a record appended meanwhile is seen by all of the queries or by none.
    let snapshot = connection.unchecked_transaction()?;
    let walked = walk(&snapshot, "")?;
    let numbered: Option<u64> = snapshot
        .query_row(
            "SELECT seq FROM sqlite_sequence WHERE name = 'record'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    Ok(match walked {
        Verification::Intact { records, .. } if numbered.is_some_and(|numbered| numbered > records) => {
            Verification::Broken {
                sequence: records + 1,
                breach: Breach::Missing,
            }
        }
        walked => walked,
    })
}

/// Walks each chain of another ledger, to the record that the last import brought.
pub(super) fn verify_imported(connection: &Connection) -> rusqlite::Result<Vec<(String, Verification)>> {
    let snapshot = connection.unchecked_transaction()?;
    let mut statement = snapshot.prepare(
        "SELECT json_extract(body, '$.origin'), json_extract(body, '$.to'), json_extract(body, '$.head'), max(sequence)
         FROM record WHERE kind = 'imported' GROUP BY 1 ORDER BY 1",
    )?;
    let links = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut verified = Vec::new();
    for link in links {
        let (origin, to, told): (String, u64, String) = link?;
        let found = match walk(&snapshot, &origin)? {
            Verification::Intact { records, .. } if records < to => Verification::Broken {
                sequence: records + 1,
                breach: Breach::Missing,
            },
            Verification::Intact { records, head } if records > to || head != told => Verification::Broken {
                sequence: records,
                breach: Breach::Altered,
            },
            walked => walked,
        };
        verified.push((origin, found));
    }
    Ok(verified)
}

/// Walks a chain from its first record to its last.
fn walk(connection: &Connection, origin: &str) -> rusqlite::Result<Verification> {
    let mut statement = connection.prepare(&format!(
        "SELECT sequence, run, at, kind, round, pitch, gate, body, each.digest,
                started_at, version, file, of.digest, environment
         FROM {record} AS each LEFT JOIN {run} AS of ON of.id = each.run
         WHERE each.origin = ?1 ORDER BY sequence",
        record = if origin.is_empty() {
            "(SELECT *, '' AS origin FROM record)"
        } else {
            "imported_record"
        },
        run = if origin.is_empty() { "run" } else { "imported_run" },
    ))?;
    let mut rows = statement.query([origin])?;
    let (mut records, mut head) = (0, String::new());
    while let Some(row) = rows.next()? {
        let sequence = records + 1;
        if let Some(breach) = breach_of(row, sequence, &head)? {
            return Ok(Verification::Broken { sequence, breach });
        }
        (records, head) = (sequence, row.get(8)?);
    }
    Ok(Verification::Intact { records, head })
}

/// The fault of a row that should have number `sequence` and follow `previous`.
fn breach_of(row: &Row<'_>, sequence: u64, previous: &str) -> rusqlite::Result<Option<Breach>> {
    if row.get::<_, u64>(0)? != sequence {
        return Ok(Some(Breach::Missing));
    }
    let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
    let optional = |column| {
        row.get_ref(column)?
            .as_str_or_null()
            .map_err(rusqlite::Error::from)
    };
    let link = Link {
        sequence,
        run: text(1)?,
        at: text(2)?,
        kind: text(3)?,
        round: optional(4)?,
        pitch: optional(5)?,
        gate: optional(6)?,
        body: text(7)?,
    };
    if link.digest(previous) != text(8)? {
        return Ok(Some(Breach::Altered));
    }
    let starts = link.kind == RecordKind::RunStarted.name();
    Ok((starts && !same_start(row, &link)?).then_some(Breach::RunAltered))
}

/// Whether the table of runs agrees with the record that started the run.
fn same_start(row: &Row<'_>, link: &Link<'_>) -> rusqlite::Result<bool> {
    let column = |index| row.get::<_, Option<String>>(index);
    let (Some(started), Some(version), Some(file), Some(digest), Some(environment)) =
        (column(9)?, column(10)?, column(11)?, column(12)?, column(13)?)
    else {
        return Ok(false);
    };
    let Ok(environment) = serde_json::from_str::<Value>(&environment) else {
        return Ok(false);
    };
    let in_table = RunStart {
        version,
        file,
        digest,
        environment,
    };
    Ok(started == link.at
        && serde_json::from_str(link.body).is_ok_and(|in_record: RunStart| in_record == in_table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_move_from_one_field_to_the_next_unseen() {
        let digest = |round, pitch| {
            let (run, at, kind, gate, body) = ("r", "t", "finding", None, "{}");
            Link {
                sequence: 1,
                run,
                at,
                kind,
                round,
                pitch,
                gate,
                body,
            }
            .digest("")
        };
        assert_ne!(
            digest(Some("a\u{1}b"), Some("c")),
            digest(Some("a"), Some("b\u{1}c"))
        );
        assert_ne!(digest(Some("a"), None), digest(None, Some("a")));
        assert_ne!(digest(Some(""), None), digest(None, None));
    }
}
