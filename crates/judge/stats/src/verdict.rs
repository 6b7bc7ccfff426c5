//! From an interval to a decision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Criteria, Interval, log_speedup, speedup_fraction};

/// What the evidence says about a speed-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// At least as fast as the target.
    Adopt,
    /// Faster, but under the target.
    Marginal,
    /// Known to be practically no difference.
    ValidNegative,
    /// Slower by more than ε, or a broken floor on some problem.
    Regression,
    /// The interval is too wide to decide, or there is none.
    Inconclusive,
}

/// The decision on one interval [lo, hi]; the first rule that applies:
///
/// - adopt: lo ≥ T
/// - regression: hi ≤ −ε
/// - valid negative: −ε < lo and hi < ε
/// - marginal: lo > 0 and hi < T
/// - inconclusive: anything else, and no interval at all
///
/// Only the third and fourth overlap: surely faster, but by less than ε, is a valid negative.
pub fn decide(interval: Option<&Interval>, criteria: &Criteria) -> Decision {
    let Some(Interval { lower, upper, .. }) = interval else {
        return Decision::Inconclusive;
    };
    let target = criteria.log_target();
    let (least_zero, greatest_zero) = criteria.log_practically_zero();
    if *lower >= target {
        Decision::Adopt
    } else if *upper <= least_zero {
        Decision::Regression
    } else if *lower > least_zero && *upper < greatest_zero {
        Decision::ValidNegative
    } else if *lower > 0.0 && *upper < target {
        Decision::Marginal
    } else {
        Decision::Inconclusive
    }
}

/// Whether the interval refutes a claim whose lowest stated quantile is the speed-up `lowest_claimed` (a
/// fraction, over −1).
///
/// Refuted when the whole interval is under it: the measurement then excludes even the outcome that the author called
/// poor. The lowest quantile and not the median, because a claim of 1…5…12 % with a result of 3 % was not wrong; its
/// optimism shows in the forecast's score. If a single number is claimed, pass that number.
pub fn claim_refuted(interval: &Interval, lowest_claimed: f64) -> bool {
    interval.upper < log_speedup(lowest_claimed)
}

/// The smallest speed-up, as a fraction, that an interval of this width distinguishes from zero: exp(half-width) − 1.
///
/// A true effect of this size is distinguished from zero about half of the time, a greater one more often: so anything
/// smaller was most likely invisible to the measurement.
pub fn smallest_visible_effect(interval: &Interval) -> f64 {
    speedup_fraction(interval.half_width())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use proptest::prelude::*;

    fn fractions(lower: f64, upper: f64) -> Interval {
        let (lower, upper) = (log_speedup(lower), log_speedup(upper));
        Interval {
            estimate: (lower + upper) / 2.0,
            lower,
            upper,
            origin: Origin::Declared,
        }
    }

    #[test]
    fn one_interval_of_each_kind() {
        for (lower, upper, expected) in [
            (0.02, 0.09, Decision::Adopt),
            (0.019, 0.09, Decision::Inconclusive),
            (-0.09, -0.01, Decision::Regression),
            (-0.09, -0.009, Decision::Inconclusive),
            (-0.009, 0.009, Decision::ValidNegative),
            (0.001, 0.009, Decision::ValidNegative),
            (-0.01, 0.009, Decision::Inconclusive),
            (0.001, 0.01, Decision::Marginal),
            (0.001, 0.019, Decision::Marginal),
            (0.001, 0.02, Decision::Inconclusive),
            (0.0, 0.015, Decision::Inconclusive),
            (-0.5, 0.5, Decision::Inconclusive),
        ] {
            let decision = decide(Some(&fractions(lower, upper)), &Criteria::default());
            assert_eq!(decision, expected, "{lower} … {upper}");
        }
        assert_eq!(decide(None, &Criteria::default()), Decision::Inconclusive);
    }

    #[test]
    fn a_claim_is_refuted_only_when_excluded() {
        assert!(claim_refuted(&fractions(-0.01, 0.04), 0.05));
        assert!(!claim_refuted(&fractions(-0.01, 0.06), 0.05));
    }

    #[test]
    fn visible_effect_is_the_half_width() {
        let interval = Interval {
            estimate: 0.5,
            lower: 0.5 - 1.03f64.ln(),
            upper: 0.5,
            origin: Origin::Declared,
        };
        assert!((smallest_visible_effect(&interval) - 0.03).abs() < 1e-12);
    }

    proptest! {
        /// DESIGN's regions, written down as they stand: at most one applies, but for the overlap of valid
        /// negative and marginal, and the decision is always one that applies.
        #[test]
        fn regions_partition_the_plane(
            bounds in (-0.1..0.1f64, -0.1..0.1f64),
            practically_zero in 0.0..0.03f64,
            margin in 0.001..0.05f64,
        ) {
            let target = practically_zero + margin;
            let criteria = Criteria { target, practically_zero, ..Criteria::default() };
            let (lo, hi) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
            let zero = practically_zero;
            let applying: Vec<Decision> = [
                (lo >= target, Decision::Adopt),
                (hi <= -zero, Decision::Regression),
                (-zero < lo && hi < zero, Decision::ValidNegative),
                (lo > 0.0 && hi < target, Decision::Marginal),
            ]
            .into_iter()
            .filter_map(|(applies, decision)| applies.then_some(decision))
            .collect();
            let decision = decide(Some(&fractions(lo, hi)), &criteria);
            match applying[..] {
                [] => prop_assert_eq!(decision, Decision::Inconclusive),
                [only] => prop_assert_eq!(decision, only),
                _ => {
                    prop_assert_eq!(&applying[..], &[Decision::ValidNegative, Decision::Marginal][..]);
                    prop_assert_eq!(decision, Decision::ValidNegative);
                }
            }
        }
    }
}
