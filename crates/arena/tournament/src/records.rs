//! What the ledger keeps of a round, and a whole report made from it again.
//!
//! A report is made from the records alone, so that a run that was killed, or played by an earlier version, can be
//! shown too. Parts that an earlier version did not record stay empty.

use std::collections::BTreeSet;
use std::path::Path;

use gauntlet_judge::ledger::{Entry, Record, RecordKind, RunSummary};
use gauntlet_judge::{Candidate, Finding, Verdict};
use gauntlet_stats::Interval;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::forecast::{Answer, Forecast, Forecasts, prospects, returns};
use crate::outcome::{BaselineReport, ClaimOutcome, Judged, PeerOutcome, RoundReport, TournamentReport};
use crate::panel::Ranking;
use crate::pitch::FALLBACK;
use crate::round::RoundFile;

/// The name of a baseline in reports and records.
pub const BASELINE: &str = "baseline";

/// The body of a record of a round's start: everything that is fixed beforehand.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundStarted {
    /// The tournament's name.
    #[serde(default)]
    pub tournament: Option<String>,
    /// What the tournament is about.
    #[serde(default)]
    pub title: Option<String>,
    /// The digest of the criteria and all other fixed inputs.
    pub digest: String,
    /// The file as it was applied.
    #[serde(deserialize_with = "file_of_any_version")]
    pub file: RoundFile,
    /// The candidate that all others are compared with.
    pub baseline: Candidate,
    /// The same in one line.
    #[serde(default)]
    pub described: Option<String>,
    /// The name of the device that the file names.
    #[serde(default)]
    pub device: Option<String>,
}

/// The body of a record of a verdict. The findings behind it have records of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VerdictRecord {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
    /// The author.
    #[serde(default, alias = "contestant")]
    pub author: String,
    /// The proposed change.
    #[serde(default)]
    pub change: Option<String>,
    /// The parameters that differ from the baseline's.
    #[serde(default)]
    pub words: Vec<String>,
    /// The candidate that it was compared with.
    #[serde(default, alias = "control")]
    pub baseline: String,
    /// The check of the claim.
    #[serde(default)]
    pub claim: Option<ClaimOutcome>,
    /// The checks of claims against other programs.
    #[serde(default)]
    pub peers: Vec<PeerOutcome>,
    /// The forecast; none for fallbacks.
    #[serde(default)]
    pub forecast: Option<Forecast>,
    /// The speed-up found over the suite.
    #[serde(default)]
    pub found: Option<Interval>,
    /// Whether any gate examined it.
    #[serde(default)]
    pub examined: bool,
}

/// The body of a record of a round's end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundEnded {
    /// The pitch that becomes the next baseline.
    pub adopted: Option<String>,
}

/// The body of a notice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Notice {
    /// What it says.
    pub notice: String,
}

impl VerdictRecord {
    /// The record of a verdict.
    pub(crate) fn of(judged: &Judged) -> Self {
        Self {
            verdict: judged.verdict,
            reason: judged.reason.clone(),
            author: judged.author.clone(),
            change: Some(judged.change.clone()),
            words: judged.words.clone(),
            baseline: judged.baseline.clone(),
            claim: judged.claim,
            peers: judged.peers.clone(),
            forecast: judged.forecast.clone(),
            found: judged.found().cloned(),
            examined: !judged.findings.is_empty(),
        }
    }

    fn judged(self, name: &str, file: &RoundFile, findings: Vec<Finding>) -> Judged {
        Judged {
            name: name.to_owned(),
            author: self.author,
            change: self
                .change
                .or_else(|| pitched_change(file, name))
                .unwrap_or_default(),
            words: self.words,
            baseline: self.baseline,
            verdict: self.verdict,
            reason: self.reason,
            findings,
            forecast: self.forecast,
            claim: self.claim,
            peers: self.peers,
            candidate: None,
            gain: None,
        }
    }
}

/// The change of a pitch that is written in the round file itself.
fn pitched_change(file: &RoundFile, name: &str) -> Option<String> {
    let of_pitch = |name: &str| file.pitch.iter().find(|pitch| pitch.name == name);
    match name.strip_suffix(FALLBACK) {
        Some(pitch) => Some(of_pitch(pitch)?.fallback.plan.clone()),
        None => Some(of_pitch(name)?.change.clone()),
    }
}

/// A run's records do not make a report.
#[derive(Debug, Error)]
pub enum UnreadableRun {
    /// A record has another form than this version reads.
    #[error(
        "record {sequence} of run {run} has another form than this version of gauntlet reads: {source}; `gauntlet ledger \
         show {run}` lists the run's records"
    )]
    Record {
        /// The run.
        run: String,
        /// The record's number.
        sequence: u64,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// A model predicted all of its rounds and nothing ran, which earlier versions could do.
    #[error(
        "run {run} was predicted by the model of an earlier version of gauntlet and nothing was measured, so there is nothing \
         to report; `gauntlet ledger show {run}` lists its records"
    )]
    Predicted {
        /// The run.
        run: String,
    },
    /// The run was cut short before its first round.
    #[error("run {run} was cut short before its first round began, so there is nothing to report")]
    Empty {
        /// The run.
        run: String,
    },
}

impl TournamentReport {
    /// The report of a run from its records. `verdicts` are those of all runs of the ledger, in order: what is worth
    /// trying next depends on how good earlier forecasts were.
    ///
    /// # Errors
    /// A record of another form, or a run without any round.
    pub fn of_run(run: &RunSummary, records: &[Entry], verdicts: &[Entry]) -> Result<Self, UnreadableRun> {
        let begins: Vec<&Entry> = records
            .iter()
            .filter(|entry| entry.record.kind == RecordKind::RoundStarted)
            .collect();
        let mut rounds = Vec::new();
        let (mut name, mut title) = (None, None);
        for begin in begins.iter().filter(|begin| !is_predicted(begin)) {
            let started: RoundStarted = body(begin)?;
            let of_round: Vec<&Entry> = records
                .iter()
                .filter(|entry| entry.record.round == begin.record.round)
                .collect();
            name = name.or_else(|| started.tournament.clone());
            title = title.or_else(|| started.title.clone());
            rounds.push(round(started, &of_round)?);
        }
        if rounds.is_empty() {
            let run = run.id.to_string();
            return Err(if begins.is_empty() {
                UnreadableRun::Empty { run }
            } else {
                UnreadableRun::Predicted { run }
            });
        }
        let stem = || {
            let stem = Path::new(&run.start.file).file_stem();
            stem.map_or_else(
                || run.start.file.clone(),
                |stem| stem.to_string_lossy().into_owned(),
            )
        };
        let digests: BTreeSet<&str> = rounds.iter().map(|round| round.digest.as_str()).collect();
        let first = records.first().map_or(0, |entry| entry.sequence);
        let answers: Vec<Answer> = records
            .iter()
            .filter(|entry| entry.record.kind == RecordKind::Verdict)
            .filter_map(Answer::of_entry)
            .collect();
        let is_earlier = |entry: &&Entry| {
            let digest = entry.record.body["forecast"]["round-digest"].as_str();
            entry.sequence < first && digest.is_none_or(|digest| !digests.contains(digest))
        };
        let earlier: Vec<Entry> = verdicts.iter().filter(is_earlier).cloned().collect();
        let mut forecasts = Forecasts::of_entries(&earlier);
        answers.iter().for_each(|answer| forecasts.add(answer.clone()));
        Ok(Self {
            run: run.id.clone(),
            name: name.unwrap_or_else(stem),
            title: title.unwrap_or_default(),
            version: run.start.version.clone(),
            environment: serde_json::from_value(run.start.environment.clone()).unwrap_or_default(),
            prospects: prospects(&answers, &run.id, &forecasts),
            returns: returns(&rounds),
            rounds,
        })
    }
}

/// Whether a model of an earlier version predicted a round. Such verdicts were never measured, and are not reported.
fn is_predicted(begin: &Entry) -> bool {
    begin.record.body["file"]["executor"] == "model"
}

/// A round file; earlier versions wrote the cost of a call on the host too, which only predicted rounds used.
fn file_of_any_version<'de, D: Deserializer<'de>>(written: D) -> Result<RoundFile, D::Error> {
    let mut file = serde_json::Map::deserialize(written)?;
    file.remove("host");
    serde_json::from_value(file.into()).map_err(D::Error::custom)
}

/// A round from its records.
fn round(started: RoundStarted, records: &[&Entry]) -> Result<RoundReport, UnreadableRun> {
    let of_kind = |kind: RecordKind| records.iter().filter(move |entry| entry.record.kind == kind);
    let findings = |name: &str| -> Result<Vec<Finding>, UnreadableRun> {
        let is_its = |entry: &&&Entry| entry.record.pitch.as_deref() == Some(name);
        of_kind(RecordKind::Finding)
            .filter(is_its)
            .map(|entry| body(entry))
            .collect()
    };
    let ranking = of_kind(RecordKind::Ranking)
        .next()
        .map(|entry| body(entry))
        .transpose()?;
    let ended: Option<RoundEnded> = of_kind(RecordKind::RoundEnded)
        .next()
        .map(|entry| body(entry))
        .transpose()?;
    let mut notices: Vec<String> = Vec::new();
    for entry in of_kind(RecordKind::Notice) {
        notices.push(body::<Notice>(entry)?.notice);
    }
    if ended.is_none() {
        notices.push("this round was cut short: later pitches have no verdict".to_owned());
    }
    let messages = of_kind(RecordKind::Message)
        .map(|entry| body(entry))
        .collect::<Result<_, _>>()?;
    let mut judged = Vec::new();
    for entry in of_kind(RecordKind::Verdict) {
        let name = entry.record.pitch.as_deref().unwrap_or_default();
        let verdict: VerdictRecord = body(entry)?;
        judged.push(verdict.judged(name, &started.file, findings(name)?));
    }
    let file = started.file;
    let findings = findings(BASELINE)?;
    let ended = ended.unwrap_or_default();
    Ok(RoundReport {
        name: file.name.clone(),
        title: file.title.clone(),
        executor: file.executor,
        device: started.device.unwrap_or_else(|| file.device.clone()),
        digest: started.digest,
        baseline: BaselineReport {
            described: started
                .described
                .unwrap_or_else(|| started.baseline.schedule.to_string()),
            schedule: started.baseline.schedule,
            fault: fault(&findings),
            findings,
        },
        ranking: ranking.unwrap_or_else(|| Ranking {
            standings: Vec::new(),
            flags: Vec::new(),
        }),
        judged,
        adopted: ended.adopted,
        messages,
        notices,
        file,
    })
}

/// Why nothing can be compared with a baseline; none if all is well.
pub(crate) fn fault(findings: &[Finding]) -> Option<String> {
    let stopped = findings.iter().find(|finding| finding.stops().is_some())?;
    let verdict = stopped.stops()?;
    Some(format!(
        "the baseline {}, so nothing is compared with it: {}",
        verdict.sentence(),
        stopped.reason
    ))
}

fn body<T: DeserializeOwned>(entry: &Entry) -> Result<T, UnreadableRun> {
    let Record { run, body, .. } = &entry.record;
    T::deserialize(body).map_err(|source| UnreadableRun::Record {
        run: run.to_string(),
        sequence: entry.sequence,
        source,
    })
}
