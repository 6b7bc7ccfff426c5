//! An author's track record, shrunk toward the field when it is short.

use gauntlet_stats::shrunk_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answers::{Answer, Forecasts};
use gauntlet_judge::Verdict;

/// The weight of the field in a record, and of the prior assumption in the field, in forecasts. The value is itself an
/// assumption: two, so that a single hit or miss moves an unknown author by a third of the way.
pub(super) const FIELD_WEIGHT: f64 = 2.0;

/// The share of a claim's logarithm that is expected to come true for an unknown author. An assumption: half.
const CREDIBILITY: f64 = 0.5;

/// Standard error of the logarithm of an unknown author's claim. A factor of 2: the shark tank's first claim missed by
/// a factor of 2.2 (1.65× claimed, 0.74× measured).
const ERROR: f64 = std::f64::consts::LN_2;

/// The share of answered pitches that are stopped before any comparison, for an unknown author. An assumption: a
/// quarter.
const STOPPED: f64 = 0.25;

/// What an author's answered forecasts say about the next one. Each figure is shrunk toward the same figure of all
/// other authors together, which is itself shrunk toward an assumption (see `shrunk`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TrackRecord {
    /// Forecasts that were answered.
    pub settled: usize,
    /// Of these, adopted.
    pub adopted: usize,
    /// Of these, stopped before any comparison.
    pub stopped: usize,
    /// Forecasts that reached a speed-up with an interval.
    pub measured: usize,
    /// The share of a claim's logarithm to believe, from 0 to 1.
    pub credibility: f64,
    /// Standard error of the believed logarithm.
    pub error: f64,
    /// The chance of being stopped before any comparison.
    pub stop_rate: f64,
}

impl Default for TrackRecord {
    /// The record of an unknown author in an unknown field.
    fn default() -> Self {
        Self {
            settled: 0,
            adopted: 0,
            stopped: 0,
            measured: 0,
            credibility: CREDIBILITY,
            error: ERROR,
            stop_rate: STOPPED,
        }
    }
}

impl TrackRecord {
    /// The chance of reaching a comparison, relative to an unknown author in an unknown field; at most 1.
    pub fn relative_survival(&self) -> f64 {
        ((1.0 - self.stop_rate) / (1.0 - STOPPED)).min(1.0)
    }
}

impl Forecasts {
    /// The record of an author.
    pub fn record_of(&self, author: &str) -> TrackRecord {
        let is_own = |answer: &&Answer| answer.forecast.author == author;
        let own: Vec<_> = self.iter().filter(is_own).collect();
        let others: Vec<_> = self.iter().filter(|answer| !is_own(answer)).collect();
        let count = |counts: fn(Verdict) -> bool| own.iter().filter(|answer| counts(answer.verdict)).count();
        let figure = |of: &dyn Fn(&Answer) -> Option<f64>, assumed| {
            shrunk(&values(&own, of), &values(&others, of), assumed)
        };
        let credibility = figure(&realised_part, CREDIBILITY);
        let squared_miss = |answer: &Answer| Some(miss(answer, credibility)?.powi(2));
        TrackRecord {
            settled: count(Verdict::is_settled),
            adopted: count(|verdict| verdict == Verdict::Adopt),
            stopped: count(Verdict::is_a_stop),
            measured: own.iter().filter(|answer| answer.found.is_some()).count(),
            credibility,
            error: figure(&squared_miss, ERROR.powi(2)).sqrt(),
            stop_rate: figure(&is_stopped, STOPPED),
        }
    }
}

/// The mean of an author's own values, shrunk toward the mean of all other authors, which is itself shrunk toward the
/// assumption for an unknown field; each counts as [`FIELD_WEIGHT`] values. The field excludes the author, so that no
/// value counts twice.
pub(super) fn shrunk(own: &[f64], others: &[f64], assumed: f64) -> f64 {
    shrunk_mean(own, shrunk_mean(others, assumed, FIELD_WEIGHT), FIELD_WEIGHT)
}

fn values(answers: &[&Answer], of: &dyn Fn(&Answer) -> Option<f64>) -> Vec<f64> {
    answers.iter().filter_map(|answer| of(answer)).collect()
}

/// The share of a claim's logarithm that came true, from 0 to 1; 0 or 1 for a claim that promised no gain. A result
/// above the claim counts as 1: an author who promised too little is not believed beyond the stated claim.
fn realised_part(answer: &Answer) -> Option<f64> {
    let (claimed, found) = answer.tested_speedup()?;
    Some(if claimed.q50 > 0.0 {
        (found.estimate / claimed.q50).clamp(0.0, 1.0)
    } else {
        f64::from(u8::from(found.estimate >= claimed.q50))
    })
}

/// The difference between the result and the believed claim.
fn miss(answer: &Answer, credibility: f64) -> Option<f64> {
    let (claimed, found) = answer.tested_speedup()?;
    Some(found.estimate - credibility * claimed.q50)
}

fn is_stopped(answer: &Answer) -> Option<f64> {
    let is_settled = answer.verdict.is_settled();
    is_settled.then(|| f64::from(u8::from(answer.verdict.is_a_stop())))
}
