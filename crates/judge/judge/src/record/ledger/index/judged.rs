//! A verdict as a row of the index.

use jiff::Timestamp;
use rusqlite::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::ledger::judgement::{Commit, JudgementRecord, Speedup};
use crate::record::ledger::read;
use crate::record::ledger::record::{Entry, RunId};

/// The columns that [`judged`] reads.
pub(super) const JUDGED: &str = "SELECT run, sequence, origin, at, command, client, task, kernel, kernel_digest, baseline, verdict, reason,
    lower, estimate, upper, interrupted, predicted, round, pitch, kernel_commit, baseline_commit
    FROM verdict";

/// A verdict in short: what a command found, or of a pitch in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Judged {
    /// The run.
    pub run: RunId,
    /// The number of its record.
    pub sequence: u64,
    /// The ledger that it was imported from, by the digest of that ledger's first record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// When it was stored.
    pub at: Timestamp,
    /// The command: `compare`, `judge`, `check`, `tune`, or `run` for a pitch in a round.
    pub command: String,
    /// On whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The task or the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The kernel that the verdict is about, as it was given; the pitch in a round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The digest of that kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_digest: Option<String>,
    /// What it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The verdict; none if the command gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Its reason.
    pub reason: String,
    /// The speed-up between its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Whether the model gave it and nothing ran.
    pub predicted: bool,
    /// The round of a pitch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// The pitch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pitch: Option<String>,
    /// Where the kernel is in the history of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// Where that is which it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_commit: Option<Commit>,
}

/// What a command found.
pub(super) fn of_judgement(entry: &Entry) -> Option<Judged> {
    // Its document, by far the largest part, is of no use here.
    let body = JudgementRecord::deserialize(&entry.record.body).ok()?;
    let mut kernels = body.kernels.into_iter().rev();
    let [kernel, baseline] = [kernels.next(), kernels.next()];
    Some(Judged {
        command: body.command.into_iter().next().unwrap_or_default(),
        client: body.client,
        task: Some(body.task),
        kernel_digest: kernel.as_ref().map(|kernel| kernel.digest.clone()),
        commit: kernel.as_ref().and_then(|kernel| kernel.commit.clone()),
        baseline_commit: baseline.as_ref().and_then(|kernel| kernel.commit.clone()),
        kernel: kernel.map(|kernel| kernel.text),
        baseline: baseline.map(|kernel| kernel.text),
        verdict: body.verdict,
        reason: body.reason,
        speedup: body.speedup,
        interrupted: body.interrupted,
        predicted: false,
        ..bare(entry)
    })
}

/// The verdict on a pitch.
pub(super) fn of_round(entry: &Entry, task: Option<String>) -> Judged {
    let body = &entry.record.body;
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    Judged {
        task,
        kernel: entry.record.pitch.clone(),
        baseline: text("baseline"),
        verdict: text("verdict"),
        reason: text("reason").unwrap_or_default(),
        predicted: body["predicted"] == true,
        ..bare(entry)
    }
}

fn bare(entry: &Entry) -> Judged {
    Judged {
        run: entry.record.run.clone(),
        sequence: entry.sequence,
        origin: entry.origin.clone(),
        at: entry.at,
        command: "run".to_owned(),
        client: None,
        task: None,
        kernel: None,
        kernel_digest: None,
        baseline: None,
        verdict: None,
        reason: String::new(),
        speedup: None,
        interrupted: false,
        predicted: false,
        round: entry.record.round.clone(),
        pitch: entry.record.pitch.clone(),
        commit: None,
        baseline_commit: None,
    }
}

/// A place in a repository as the index keeps it.
pub(super) fn kept(commit: Option<&Commit>) -> Option<String> {
    serde_json::to_string(commit?).ok()
}

fn commit(kept: Option<String>) -> Option<Commit> {
    serde_json::from_str(&kept?).ok()
}

/// The verdict of a row of [`JUDGED`].
pub(super) fn judged(row: &Row<'_>) -> rusqlite::Result<Judged> {
    let bounds: [Option<f64>; 3] = [row.get(12)?, row.get(13)?, row.get(14)?];
    Ok(Judged {
        run: row.get(0)?,
        sequence: row.get(1)?,
        origin: row.get(2)?,
        at: read::timestamp(3, row.get(3)?)?,
        command: row.get(4)?,
        client: row.get(5)?,
        task: row.get(6)?,
        kernel: row.get(7)?,
        kernel_digest: row.get(8)?,
        baseline: row.get(9)?,
        verdict: row.get(10)?,
        reason: row.get(11)?,
        speedup: match bounds {
            [Some(lower), Some(estimate), Some(upper)] => Some(Speedup {
                lower,
                estimate,
                upper,
            }),
            _ => None,
        },
        interrupted: row.get(15)?,
        predicted: row.get(16)?,
        round: row.get(17)?,
        pitch: row.get(18)?,
        commit: commit(row.get(19)?),
        baseline_commit: commit(row.get(20)?),
    })
}
