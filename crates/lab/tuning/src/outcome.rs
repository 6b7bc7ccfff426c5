//! The results of tuning, and the table made from them.

use gauntlet_parameters::Parameters;
use gauntlet_stats::{Interval, Origin, speedup_fraction};
use gauntlet_task::{Case, Sizes};
use gauntlet_task::{DispatchEntry, DispatchEvidence, DispatchTable, ModelChoice, SpeedupRange};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ranking::Ranked;

/// The result for a case.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TunedCase {
    /// The case.
    pub case: String,
    /// Its problem.
    pub problem: Sizes,
    /// The baseline.
    pub baseline: Parameters,
    /// The numbers of schedules considered.
    pub search: Search,
    /// The first choice of the model, of a kernel's own parameters that of the screening; none if no schedule is accepted.
    pub first: Option<Ranked>,
    /// The measured schedules, in the model's order.
    pub contenders: Vec<Contender>,
    /// The schedules measured again.
    pub finalists: Vec<Finalist>,
    /// The schedule that takes the baseline's place; none if the baseline stays.
    pub winner: Option<Winner>,
    /// The reason for the result.
    pub reason: String,
    /// Whether anything ran.
    pub measured: bool,
    /// The time that the measurements took.
    pub measured_seconds: f64,
}

/// The numbers of schedules considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Search {
    /// Schedules in the space.
    pub points: usize,
    /// Schedules in the space that the model simulated before its time was up.
    pub simulated: usize,
    /// Of these, accepted by the device's constraints.
    pub accepted: usize,
    /// Of these, distinct to the model.
    pub told_apart: usize,
    /// How a kernel's own parameters were searched, which no model ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screening: Option<Screening>,
}

/// The search over a kernel's own parameters by quick pairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Screening {
    /// What the search's choices at random follow from.
    pub seed: u64,
    /// Points that were looked at, in order, beside the baseline.
    pub looked_at: usize,
    /// Those among them that failed.
    pub failed: Vec<Failed>,
}

/// A point that failed in the screening: it does not build, or computes something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Failed {
    /// The values of the parameters.
    pub schedule: Parameters,
    /// What went wrong.
    pub fault: String,
}

/// A schedule that was measured.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Contender {
    /// The schedule with the model's prediction.
    #[serde(flatten)]
    pub ranked: Ranked,
    /// Heats that it took part in.
    pub heats: usize,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// Log speed-up over the baseline in the heats. It was used for the choice, so it flatters the chosen schedules.
    pub estimate: Option<f64>,
    /// The error, if any.
    pub fault: Option<String>,
}

/// A schedule measured again, on pairs that took no part in choosing it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finalist {
    /// Its rank in the model's order.
    pub rank: usize,
    /// Speed-up over the baseline; none if it could not be measured.
    pub over_baseline: Option<Interval>,
    /// Speed-up over the model's first choice; none if it could not be measured or is that choice.
    pub over_first: Option<Interval>,
    /// The error, if any.
    pub fault: Option<String>,
}

/// The schedule that won.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Winner {
    /// The schedule.
    pub schedule: Parameters,
    /// Its rank in the model's order.
    pub rank: usize,
    /// Speed-up over the baseline.
    pub speedup: Interval,
    /// Speed-up over the model's first choice: how far that choice was from the best. None if it was not measured or is
    /// that choice.
    pub over_first: Option<Interval>,
}

impl TunedCase {
    /// The result for a case as it was written before; none if it is not of this case.
    pub fn recalled(written: &Value, case: &Case) -> Option<Self> {
        fn part<T: DeserializeOwned>(written: &Value, name: &str) -> Option<T> {
            serde_json::from_value(written.get(name)?.clone()).ok()
        }
        let is_the_same = written["case"] == case.name.as_str()
            && serde_json::to_value(&case.sizes).is_ok_and(|sizes| written["problem"] == sizes);
        is_the_same.then_some(())?;
        Some(Self {
            case: case.name.clone(),
            problem: case.sizes.clone(),
            baseline: part(written, "baseline")?,
            search: part(written, "search")?,
            first: part(written, "first")?,
            contenders: part(written, "contenders")?,
            finalists: part(written, "finalists")?,
            winner: part(written, "winner")?,
            reason: part(written, "reason")?,
            measured: part(written, "measured")?,
            measured_seconds: part(written, "measured-seconds")?,
        })
    }

    /// A case that keeps its baseline.
    pub(super) fn kept(case: &Case, baseline: Parameters, search: Search, reason: impl Into<String>) -> Self {
        Self {
            case: case.name.clone(),
            problem: case.sizes.clone(),
            baseline,
            search,
            first: None,
            contenders: Vec::new(),
            finalists: Vec::new(),
            winner: None,
            reason: reason.into(),
            measured: false,
            measured_seconds: 0.0,
        }
    }

    /// The schedule to use.
    pub fn schedule(&self) -> &Parameters {
        self.winner
            .as_ref()
            .map_or(&self.baseline, |winner| &winner.schedule)
    }

    /// How much longer the model's first choice takes than the winner, as a fraction; none if that was not measured.
    pub fn regret(&self) -> Option<f64> {
        let (winner, first) = (self.winner.as_ref()?, self.first.as_ref()?);
        if !self.measured {
            None
        } else if winner.schedule == first.schedule {
            Some(0.0)
        } else {
            winner.over_first.as_ref().map(Interval::estimate_fraction)
        }
    }
}

/// The table of all cases decided so far.
pub fn table(cases: &[TunedCase], device: &str, executor: &str, version: &str, made: &str) -> DispatchTable {
    DispatchTable {
        version: gauntlet_task::dispatch::VERSION,
        device: device.to_owned(),
        executor: executor.to_owned(),
        gauntlet: version.to_owned(),
        made: made.to_owned(),
        entries: cases.iter().map(entry).collect(),
    }
}

fn entry(tuned: &TunedCase) -> DispatchEntry {
    let regret = tuned
        .winner
        .as_ref()
        .and_then(|winner| winner.over_first.as_ref());
    DispatchEntry {
        case: tuned.case.clone(),
        problem: tuned.problem.to_record(),
        schedule: tuned.schedule().clone(),
        evidence: match (&tuned.winner, tuned.measured) {
            (None, _) => DispatchEvidence::Kept,
            (Some(_), true) => DispatchEvidence::Measured,
            (Some(_), false) => DispatchEvidence::Predicted,
        },
        speedup: tuned.winner.as_ref().map(|winner| range(&winner.speedup)),
        model_choice: tuned.first.as_ref().map(|first| ModelChoice {
            schedule: first.schedule.clone(),
            regret: tuned.regret(),
            low: regret.map(|interval| speedup_fraction(interval.lower)),
            high: regret.map(|interval| speedup_fraction(interval.upper)),
        }),
    }
}

fn range(interval: &Interval) -> SpeedupRange {
    SpeedupRange {
        estimate: interval.estimate.exp(),
        low: interval.lower.exp(),
        high: interval.upper.exp(),
        confidence: match interval.origin {
            Origin::Measured { confidence, .. }
            | Origin::Calls { confidence, .. }
            | Origin::Predicted { confidence } => confidence,
            Origin::Declared => 1.0,
        },
    }
}
