//! The accuracy of each author's forecasts.

use std::collections::BTreeSet;

use gauntlet_stats::{BrierParts, LogQuantiles, brier_parts, brier_score, logarithmic_score, skill};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::{Answer, Forecasts};
use super::record::{TrackRecord, shrunk};
use super::stated::SETTLED;
use gauntlet_judge::Verdict;

/// The scores of every author and of the whole field.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Forecasters {
    /// By shrunk skill, the best first; those with nothing answered last.
    pub authors: Vec<Forecaster>,
    /// All forecasts together.
    pub field: Forecaster,
    /// The constant forecast: the frequency of each verdict in the whole field, each counted once more than it was
    /// given. It knows only the field's outcomes. Each author's own outcomes are included, which flatters the constant
    /// forecast and no author.
    pub constant: Vec<(Verdict, f64)>,
    /// Verdicts whose records hold no forecast, because an earlier version wrote them.
    pub without_forecast: usize,
    /// Verdicts whose records have another form than this version reads.
    pub unreadable: usize,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Forecaster {
    /// The author; none for the field.
    pub author: Option<String>,
    /// Different forecasts stated.
    pub forecasts: usize,
    /// The odds' scores; none if nothing was answered.
    pub odds: Option<OddsScores>,
    /// The quantiles' scores; none if no speed-up was found.
    pub speedup: Option<SpeedupScores>,
    /// The record as the panel uses it; none for the field.
    pub record: Option<TrackRecord>,
}

/// Scores of odds over the settled verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OddsScores {
    /// Forecasts answered.
    pub settled: usize,
    /// Mean Brier score, 0 best and 2 worst.
    pub brier: f64,
    /// Mean logarithmic score, 0.009 best and 6.80 worst.
    pub logarithmic: f64,
    /// Skill of the Brier score against the constant forecast: 1 best, 0 no better.
    pub skill: f64,
    /// The Brier score shrunk toward that of all other authors, which is itself shrunk toward the constant forecast's.
    pub shrunk_brier: f64,
    /// Its skill.
    pub shrunk_skill: f64,
    /// The components of the Brier score.
    pub parts: BrierParts,
}

/// Scores of the quantiles of the log speed-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SpeedupScores {
    /// Speed-ups found.
    pub measured: usize,
    /// Mean pinball loss at q10, q50 and q90.
    pub pinball: [f64; 3],
    /// Mean continuous ranked probability score, in log speed-up; for a certain claim it equals the claim's error.
    pub crps: f64,
    /// Its skill against the forecast that every change has no effect.
    pub skill: Option<f64>,
    /// The share of speed-ups found within q10…q90; it should be four of five.
    pub coverage: f64,
    /// The share of forecasts whose q10…q90 overlaps the interval found.
    pub overlap: f64,
    /// Mean of ln(claimed q50) − ln(found): above 0 means overclaiming.
    pub bias: f64,
}

impl Forecasts {
    /// The scores of all authors who stated forecasts.
    pub fn forecasters(&self) -> Forecasters {
        let constant = self.constant();
        let names: BTreeSet<_> = self
            .iter()
            .map(|answer| answer.forecast.author.as_str())
            .collect();
        let score = |author: Option<&str>| {
            let is_own = |answer: &&Answer| author.is_none_or(|name| answer.forecast.author == name);
            let (own, others): (Vec<_>, Vec<_>) = self.iter().partition(is_own);
            Forecaster {
                author: author.map(str::to_owned),
                forecasts: own.len(),
                odds: odds_scores(&own, &others, &constant),
                speedup: speedup_scores(&own),
                record: author.map(|name| self.record_of(name)),
            }
        };
        let mut authors: Vec<_> = names.into_iter().map(|name| score(Some(name))).collect();
        let skill = |one: &Forecaster| one.odds.map_or(f64::NEG_INFINITY, |odds| odds.shrunk_skill);
        authors.sort_by(|one, other| skill(other).total_cmp(&skill(one)));
        Forecasters {
            authors,
            field: score(None),
            constant: SETTLED.into_iter().zip(constant.iter().copied()).collect(),
            without_forecast: self.without_forecast,
            unreadable: self.unreadable,
        }
    }

    /// The frequencies of the settled verdicts by Laplace's rule of succession.
    fn constant(&self) -> Vec<f64> {
        let mut counts = [1.0; SETTLED.len()];
        for (_, happened) in self.iter().filter_map(Answer::settled_odds) {
            counts[happened] += 1.0;
        }
        let sum: f64 = counts.iter().sum();
        counts.map(|count| count / sum).to_vec()
    }
}

fn odds_scores(own: &[&Answer], others: &[&Answer], constant: &[f64]) -> Option<OddsScores> {
    let settled = |answers: &[&Answer]| -> Vec<_> {
        answers
            .iter()
            .filter_map(|answer| answer.settled_odds())
            .collect()
    };
    let (own, others) = (settled(own), settled(others));
    let scores = |forecasts: &[(Vec<f64>, usize)]| -> Vec<f64> {
        forecasts
            .iter()
            .map(|(odds, happened)| brier_score(odds, *happened))
            .collect()
    };
    let always = |(_, happened): &(Vec<f64>, usize)| brier_score(constant, *happened);
    let parts = brier_parts(&own)?;
    let brier = mean(scores(&own))?;
    let reference = mean(own.iter().map(always))?;
    let field_reference = mean(own.iter().chain(&others).map(always))?;
    let shrunk_brier = shrunk(&scores(&own), &scores(&others), field_reference);
    Some(OddsScores {
        settled: own.len(),
        brier,
        logarithmic: mean(
            own.iter()
                .map(|(odds, happened)| logarithmic_score(odds, *happened)),
        )?,
        skill: skill(brier, reference)?,
        shrunk_brier,
        shrunk_skill: skill(shrunk_brier, field_reference)?,
        parts,
    })
}

fn speedup_scores(own: &[&Answer]) -> Option<SpeedupScores> {
    let tested: Vec<_> = own.iter().filter_map(|answer| answer.tested_speedup()).collect();
    let mean_of = |score: &dyn Fn(&LogQuantiles, f64) -> f64| {
        mean(
            tested
                .iter()
                .map(|(claimed, found)| score(claimed, found.estimate)),
        )
    };
    let share = |holds: bool| f64::from(u8::from(holds));
    let crps = mean_of(&LogQuantiles::crps)?;
    let pinball = |index: usize| mean_of(&|claimed, found| claimed.pinball_losses(found)[index]);
    Some(SpeedupScores {
        measured: tested.len(),
        pinball: [pinball(0)?, pinball(1)?, pinball(2)?],
        crps,
        skill: skill(crps, mean_of(&|_, found| found.abs())?),
        coverage: mean_of(&|claimed, found| share(claimed.covers(found)))?,
        overlap: mean(
            tested
                .iter()
                .map(|(claimed, found)| share(claimed.overlaps(found.lower, found.upper))),
        )?,
        bias: mean_of(&|claimed, found| claimed.q50 - found)?,
    })
}

fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}
