//! The result of a tournament, as shown in reports and stored in JSON.

use std::collections::BTreeMap;

use gauntlet_parameters::Parameters;
use gauntlet_stats::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forecast::{Forecast, Prospect, Return};
use crate::messages::Message;
use crate::panel::Ranking;
use crate::pitch::Quantiles;
use crate::round::RoundFile;
use gauntlet_judge::Candidate;
use gauntlet_judge::ExecutorKind;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::RunId;
use gauntlet_judge::{Comparison, Finding};

/// The result of a tournament.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TournamentReport {
    /// Its run in the ledger.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The program's version.
    pub version: String,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// Its rounds.
    pub rounds: Vec<RoundReport>,
    /// What is worth trying next, best first.
    pub prospects: Vec<Prospect>,
    /// The return on the hours spent, best first.
    pub returns: Vec<Return>,
}

/// The result of a round.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RoundReport {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The executor of the candidates.
    pub executor: ExecutorKind,
    /// The device.
    pub device: String,
    /// The digest of the criteria and all other fixed inputs.
    pub digest: String,
    /// The file as it was applied, criteria included.
    pub file: RoundFile,
    /// The baseline.
    pub baseline: BaselineReport,
    /// The panel's ranking.
    pub ranking: Ranking,
    /// Each pitch and fallback, in the order examined.
    pub judged: Vec<Judged>,
    /// The pitch that becomes the next baseline.
    pub adopted: Option<String>,
    /// What contestants and panellists were asked and answered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// Notices.
    pub notices: Vec<String>,
}

/// The result of examining the baseline.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BaselineReport {
    /// Its parameters.
    pub schedule: Parameters,
    /// The same in one line, such as `stages 3 · direct`.
    pub described: String,
    /// The gates' findings.
    pub findings: Vec<Finding>,
    /// Why nothing can be compared with it; none if all is well.
    pub fault: Option<String>,
}

/// A candidate with its verdict.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Judged {
    /// The candidate's name: its pitch's name, with `(fallback)` for a fallback.
    pub name: String,
    /// The author.
    pub author: String,
    /// The proposed change.
    pub change: String,
    /// The words of the schedule that differ from the candidate it is compared with, such as `stages: 1 → 3`.
    pub words: Vec<String>,
    /// The candidate it was compared with.
    pub baseline: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
    /// The finding of each gate.
    pub findings: Vec<Finding>,
    /// The forecast; none for fallbacks, which state none.
    pub forecast: Option<Forecast>,
    /// The check of the claim; none for fallbacks, which claim nothing.
    pub claim: Option<ClaimOutcome>,
    /// The checks of claims against other programs.
    pub peers: Vec<PeerOutcome>,
    /// What was built, which becomes the next baseline if it is adopted; none in a report that was read again.
    #[serde(skip)]
    pub candidate: Option<Candidate>,
    /// The lower bound of the log speed-up, summed over this candidate and those it is built on; none if one of them
    /// has no interval.
    #[serde(skip)]
    pub gain: Option<f64>,
}

/// A speed-up with its interval; 1.5 is one and a half times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Factor {
    /// The lower bound.
    pub lower: f64,
    /// The estimate.
    pub middle: f64,
    /// The upper bound.
    pub upper: f64,
}

/// A claim and the result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ClaimOutcome {
    /// The claimed speed-up.
    pub claimed: Quantiles,
    /// The speed-up found; none if it was not measured.
    pub found: Option<f64>,
    /// Whether the claim is refuted: the upper bound is below the least claimed speed-up.
    pub refuted: Option<bool>,
}

/// A claim against another program, and the recorded result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PeerOutcome {
    /// The program.
    pub peer: String,
    /// The claimed speed-up over it.
    pub claimed: f64,
    /// The speed-up over it by the recorded times; none without such times.
    pub found: Option<f64>,
    /// Whether the recorded times, with their declared uncertainty, rule the claim out.
    pub contradicted: bool,
}

impl Judged {
    /// The comparison, if there was one.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.findings.iter().find_map(Finding::comparison)
    }

    /// The same as factors.
    pub fn factor(&self) -> Option<Factor> {
        self.found().map(|found| Factor {
            lower: found.lower.exp(),
            middle: found.estimate.exp(),
            upper: found.upper.exp(),
        })
    }

    /// The speed-up found over the suite; none without an interval, or if the comparison is void.
    pub fn found(&self) -> Option<&Interval> {
        // A candidate that was compared and is still blocked had impossible times.
        let comparison = self.comparison().filter(|_| self.verdict != Verdict::Blocked)?;
        comparison.assessment.suite.as_ref()
    }
}
