//! Beliefs about a log speed-up before it is measured, and what an attempt is expected to bring.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::{Interval, Origin};

/// The smallest deviation that a belief may have, so that precisions stay finite.
const SHARPEST: f64 = 1e-9;

/// A belief about a log speed-up: a normal distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Belief {
    /// Its mean, which is its median too.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// What an attempt brings, in log speed-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// On average.
    pub mean: f64,
    /// One chance in ten of less.
    pub low: f64,
    /// One chance in ten of more.
    pub high: f64,
}

impl Belief {
    /// The belief that puts the probability `confidence` between two bounds, and equal probabilities below and above
    /// them.
    pub fn between(lower: f64, upper: f64, confidence: f64) -> Self {
        let reach = Normal::standard().inverse_cdf((1.0 + confidence) / 2.0);
        Self {
            mean: (lower + upper) / 2.0,
            deviation: (upper - lower).abs() / (2.0 * reach),
        }
    }

    /// The belief that an interval supports. Declared bounds are taken as the ends of a uniform distribution, because a
    /// declaration does not say where between them the truth lies.
    pub fn of_interval(interval: &Interval) -> Self {
        let deviation = match interval.origin {
            Origin::Measured { confidence, .. }
            | Origin::Calls { confidence, .. }
            | Origin::Predicted { confidence } => {
                Self::between(interval.lower, interval.upper, confidence).deviation
            }
            Origin::Declared => (interval.upper - interval.lower) / 12f64.sqrt(),
        };
        Self {
            mean: interval.estimate,
            deviation,
        }
    }

    /// Combines several beliefs about the same speed-up, assuming independent errors: the mean weighted by precision
    /// (the inverse of the variance), with the sum of the precisions. None for an empty list.
    pub fn pooled(beliefs: &[Self]) -> Option<Self> {
        let precision = |belief: &Self| belief.deviation.max(SHARPEST).powi(-2);
        let total: f64 = beliefs.iter().map(precision).sum();
        (!beliefs.is_empty()).then(|| Self {
            mean: beliefs
                .iter()
                .map(|belief| precision(belief) / total * belief.mean)
                .sum(),
            deviation: total.powf(-0.5),
        })
    }

    /// What an attempt brings if it reaches a speed-up with probability `chance` and nothing otherwise. No speed-up can
    /// exceed `most` (a log speed-up): belief above `most` counts as `most`.
    ///
    /// None for a deviation that is not positive and finite, or a mean that is not finite.
    pub fn gain(&self, chance: f64, most: f64) -> Option<Gain> {
        let normal = Normal::new(self.mean, self.deviation)
            .ok()
            .filter(|_| self.mean.is_finite() && self.deviation.is_finite())?;
        // The quantile of a mixture of nothing, of weight 1 − chance, and the normal distribution.
        let quantile = |probability: f64| {
            let below_nothing = chance * normal.cdf(0.0);
            let uncapped = if probability < below_nothing {
                normal.inverse_cdf(probability / chance)
            } else if probability <= below_nothing + (1.0 - chance) {
                0.0
            } else {
                normal.inverse_cdf((probability - (1.0 - chance)) / chance)
            };
            uncapped.min(most)
        };
        Some(Gain {
            mean: chance * capped_mean(&normal, self, most),
            low: quantile(0.1),
            high: quantile(0.9),
        })
    }
}

/// The mean of the minimum of a normal variable and `most`.
fn capped_mean(normal: &Normal, belief: &Belief, most: f64) -> f64 {
    if most == f64::INFINITY {
        return belief.mean;
    }
    let below = normal.cdf(most);
    belief.mean * below - belief.deviation.powi(2) * normal.pdf(most) + most * (1.0 - below)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn belief(mean: f64, deviation: f64) -> Belief {
        Belief { mean, deviation }
    }

    #[test]
    fn beliefs_weigh_by_their_precision() {
        // Precisions 1 and 4: (1 · 1 + 4 · 0) / 5, and a deviation of 1 / √5.
        let pooled = Belief::pooled(&[belief(1.0, 1.0), belief(0.0, 0.5)]).unwrap();
        assert!((pooled.mean - 0.2).abs() < 1e-12 && (pooled.deviation - 0.2f64.sqrt()).abs() < 1e-12);
        assert_eq!(Belief::pooled(&[]), None);
    }

    #[test]
    fn bounds_become_deviations() {
        // 95 % within 1.959964 deviations, 80 % within 1.281552; a uniform one has its width over √12.
        let wide = Belief::between(-1.0, 3.0, 0.95);
        assert!((wide.mean - 1.0).abs() < 1e-12 && (wide.deviation - 2.0 / 1.959_963_984_54).abs() < 1e-9);
        assert!((Belief::between(0.0, 1.0, 0.8).deviation - 0.5 / 1.281_551_565_545).abs() < 1e-9);
        let declared = crate::declared_interval(2.0, 1.0, 0.05).unwrap();
        let uniform = Belief::of_interval(&declared);
        assert!((uniform.deviation - (declared.upper - declared.lower) / 12f64.sqrt()).abs() < 1e-12);
        assert_eq!(uniform.mean, declared.estimate);
    }

    #[test]
    fn gains_by_hand() {
        // Certain to succeed and no cap: the normal distribution itself; z of 0.9 is 1.281552.
        let gain = belief(0.1, 0.2).gain(1.0, f64::INFINITY).unwrap();
        assert!((gain.mean - 0.1).abs() < 1e-12);
        assert!((gain.low - (0.1 - 0.2 * 1.281_551_565_545)).abs() < 1e-9);
        assert!((gain.high - (0.1 + 0.2 * 1.281_551_565_545)).abs() < 1e-9);
        // Half a chance: 10 % of all is 20 % of the half, z = −0.841621 → below nothing, so that is the low end.
        let gain = belief(0.1, 0.2).gain(0.5, f64::INFINITY).unwrap();
        assert!((gain.mean - 0.05).abs() < 1e-12);
        assert!((gain.low - (0.1 - 0.2 * 0.841_621_233_573)).abs() < 1e-9);
        assert!((gain.high - (0.1 + 0.2 * 0.841_621_233_573)).abs() < 1e-9);
        // Capped at its own mean: mean − deviation / √(2π).
        let gain = belief(0.1, 0.2).gain(1.0, 0.1).unwrap();
        assert!((gain.mean - (0.1 - 0.2 / (2.0 * std::f64::consts::PI).sqrt())).abs() < 1e-12);
        assert_eq!(gain.high, 0.1);
        // No chance at all.
        let none = belief(0.1, 0.2).gain(0.0, 1.0).unwrap();
        assert_eq!((none.mean, none.low, none.high), (0.0, 0.0, 0.0));
        assert!(belief(0.1, 0.0).gain(0.5, 1.0).is_none() && belief(f64::NAN, 1.0).gain(0.5, 1.0).is_none());
    }

    proptest! {
        #[test]
        fn ends_surround_and_more_chance_of_a_gain_is_better(
            mean in -1.0..1.0f64,
            deviation in 0.01..2.0f64,
            chance in 0.0..1.0f64,
            most in 0.0..2.0f64,
        ) {
            let gain = belief(mean, deviation).gain(chance, most).unwrap();
            prop_assert!(gain.low <= gain.high && gain.high <= most);
            let surer = belief(mean, deviation).gain(1.0, most).unwrap();
            prop_assert!((gain.mean - chance * surer.mean).abs() < 1e-12);
            let freer = belief(mean, deviation).gain(chance, most + 1.0).unwrap();
            prop_assert!(freer.mean >= gain.mean - 1e-12);
        }
    }
}
