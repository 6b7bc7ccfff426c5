//! Which call stands for a slot? The lab's choice beside others, each with the whole rule on the same machines.

use gauntlet_judge::{Measurement, Observer};
use gauntlet_stats::{Criteria, Decision, median, quantile, typical_call};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::noise::Noise;
use super::rule::Rule;
use super::tally::Tally;
use super::trial::{Scene, Trial};

/// A figure of the calls of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The lab's: [`typical_call`].
    LowerQuartile,
    /// The median.
    Median,
    /// The shortest call.
    Minimum,
    /// The mean of the calls between the first and the last quarter.
    TrimmedMean,
    /// The mean.
    Mean,
}

impl Estimator {
    /// All, the lab's first.
    pub const ALL: [Self; 5] = [
        Self::LowerQuartile,
        Self::Median,
        Self::Minimum,
        Self::TrimmedMean,
        Self::Mean,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::LowerQuartile => "lower quartile",
            Self::Median => "median",
            Self::Minimum => "minimum",
            Self::TrimmedMean => "trimmed mean",
            Self::Mean => "mean",
        }
    }

    /// The figure of these calls; NaN without calls.
    pub fn of(self, calls: &[f64]) -> f64 {
        let mean = |calls: &[f64]| calls.iter().sum::<f64>() / calls.len() as f64;
        match self {
            Self::LowerQuartile => typical_call(calls),
            Self::Median => median(calls),
            Self::Minimum => quantile(calls, 0.0),
            Self::TrimmedMean => {
                let mut sorted = calls.to_vec();
                sorted.sort_unstable_by(f64::total_cmp);
                let cut = sorted.len() / 4;
                mean(&sorted[cut..sorted.len() - cut])
            }
            Self::Mean => mean(calls),
        }
    }
}

/// One estimator on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EstimatorCell {
    /// The kind of noise.
    pub machine: String,
    /// The estimator.
    pub estimator: Estimator,
    /// The rule's decisions on a thing compared with itself.
    pub same: Tally,
    /// Its decisions on a candidate that is 3 % faster.
    pub faster: Tally,
    /// The mean number of pairs of processes that these took.
    pub pairs: f64,
}

/// Each estimator on each machine, `comparisons` of a thing with itself and as many with an effect of 3 %.
pub fn cells(
    criteria: &Criteria,
    plan: &Measurement,
    comparisons: usize,
    seed: u64,
    observer: &dyn Observer,
) -> Result<Vec<EstimatorCell>, gauntlet_stats::Error> {
    let mut cells = Vec::new();
    for noise in Noise::ALL {
        for estimator in Estimator::ALL {
            observer.progress(&format!("{} noise, {} of slots", noise.name(), estimator.name()));
            let of = |effect: Effect| -> Result<Vec<Trial>, gauntlet_stats::Error> {
                let scene = Scene {
                    noise,
                    effect,
                    criteria,
                    plan,
                    estimator,
                };
                // The same streams for each estimator, so that all see the same machines.
                let streams = (0..comparisons as u64).into_par_iter();
                streams.map(|stream| scene.compare(seed, stream)).collect()
            };
            let (same, faster) = (of(Effect::NONE)?, of(Effect::of(FASTER))?);
            if same.is_empty() {
                continue;
            }
            let tally = |trials: &[Trial], effect| {
                let said: Vec<Decision> = trials.iter().map(|trial| trial.decision).collect();
                Tally::new(Rule::Gauntlet, &said, effect, criteria)
            };
            let pairs: usize = faster.iter().map(|trial| trial.pairs).sum();
            cells.push(EstimatorCell {
                machine: noise.name().to_owned(),
                estimator,
                same: tally(&same, Effect::NONE),
                faster: tally(&faster, Effect::of(FASTER)),
                pairs: pairs as f64 / faster.len() as f64,
            });
        }
    }
    Ok(cells)
}

/// The effect that estimators have to find.
const FASTER: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let calls = [5.0, 1.0, 2.0, 3.0, 4.0, 90.0, 7.0, 6.0];
        let found = Estimator::ALL.map(|estimator| estimator.of(&calls));
        assert_eq!(found[0], typical_call(&calls));
        assert_eq!(found[1..], [4.5, 1.0, 4.5, 14.75]);
        // Too few calls to cut.
        assert_eq!(Estimator::TrimmedMean.of(&[1.0, 2.0, 6.0]), 3.0);
    }
}
