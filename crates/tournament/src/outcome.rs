//! What came of a tournament, as reports show it and JSON holds it.

use std::collections::BTreeMap;

use gauntlet_parameters::Parameters;
use gauntlet_stats::Interval;
use serde::Serialize;

use crate::forecast::{Forecast, Prospect, Return};
use crate::panel::Ranking;
use crate::pitch::Quantiles;
use crate::plan::Plan;
use crate::round::RoundFile;
use gauntlet_judge::Candidate;
use gauntlet_judge::ExecutorKind;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::RunId;
use gauntlet_judge::{Comparison, Finding};

/// What came of a tournament.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TournamentReport {
    /// Its run in the ledger.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// The program's version.
    pub version: String,
    /// What it ran on.
    pub environment: BTreeMap<String, String>,
    /// Its rounds.
    pub rounds: Vec<RoundReport>,
    /// What is worth trying next, best first.
    pub prospects: Vec<Prospect>,
    /// What the hours brought that were spent, best first.
    pub returns: Vec<Return>,
}

/// What came of a round.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundReport {
    /// Its name.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// What ran the candidates.
    pub executor: ExecutorKind,
    /// On what.
    pub device: String,
    /// What the criteria and everything else were fixed by.
    pub digest: String,
    /// The file as it was applied, criteria included.
    pub file: RoundFile,
    /// What all was compared with.
    pub baseline: BaselineReport,
    /// The panel's ranking.
    pub ranking: Ranking,
    /// Each pitch and fallback, in the order examined.
    pub judged: Vec<Judged>,
    /// The pitch that becomes the next baseline.
    pub adopted: Option<String>,
    /// Whether the model played it and nothing was run.
    pub predicted: bool,
    /// In which order to do what is pitched; none for rounds that the model did not play.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Things worth knowing.
    pub notices: Vec<String>,
}

/// How the baseline fared.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BaselineReport {
    /// Its parameters.
    pub schedule: Parameters,
    /// The same in one line, such as `stages 3 · direct`.
    pub described: String,
    /// What the gates found.
    pub findings: Vec<Finding>,
    /// Why nothing can be compared with it; none when all is well.
    pub fault: Option<String>,
}

/// A candidate with its verdict.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judged {
    /// The candidate's name: its pitch's, or that with `(fallback)`.
    pub name: String,
    /// Who pitched it.
    #[serde(rename = "contestant")]
    pub author: String,
    /// What would be changed.
    pub change: String,
    /// The words of the schedule that differ from the control, such as `stages: 1 → 3`.
    pub words: Vec<String>,
    /// What it was compared with.
    pub control: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the model gave the verdict and nothing was run.
    pub predicted: bool,
    /// Why.
    pub reason: String,
    /// What each gate found.
    pub findings: Vec<Finding>,
    /// What was stated beforehand; none for fallbacks, which state nothing.
    pub forecast: Option<Forecast>,
    /// What became of the claim; none for fallbacks, which claim nothing.
    pub claim: Option<ClaimOutcome>,
    /// What became of claims against other programs.
    pub peers: Vec<PeerOutcome>,
    /// How it computes; the next baseline if adopted.
    #[serde(skip)]
    pub candidate: Candidate,
    /// The lower bound of the log speed-up, added up over what it is built on; none where one of them has no interval.
    #[serde(skip)]
    pub gain: Option<f64>,
}

/// A claim and what was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimOutcome {
    /// What was claimed.
    pub claimed: Quantiles,
    /// The speed-up found; none if it was not measured.
    pub found: Option<f64>,
    /// Whether even the upper bound lies under the least that was claimed.
    pub refuted: Option<bool>,
}

/// A claim against another program and what the record says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeerOutcome {
    /// The program.
    pub peer: String,
    /// How many times as fast as it the candidate was said to be.
    pub claimed: f64,
    /// How many times as fast it is by the recorded times; none without such times.
    pub found: Option<f64>,
    /// Whether the recorded times, with their declared uncertainty, rule the claim out.
    pub contradicted: bool,
}

impl Judged {
    /// The comparison, if it came so far.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.findings.iter().find_map(Finding::comparison)
    }

    /// The speed-up found over the suite; none without an interval, or where the comparison is void.
    pub fn found(&self) -> Option<&Interval> {
        // What was compared and yet is blocked had times that cannot be.
        let comparison = self.comparison().filter(|_| self.verdict != Verdict::Blocked)?;
        comparison.assessment.suite.as_ref()
    }
}
