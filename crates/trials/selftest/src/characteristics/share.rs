//! An observed share of comparisons, with a confidence interval for the true share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// Confidence of the intervals around shares.
const CONFIDENCE: f64 = 0.95;

/// A count out of a total, with the 95 % interval of Clopper & Pearson 1934 ("The Use of Confidence or Fiducial Limits
/// Illustrated in the Case of the Binomial"), whose coverage is never below its nominal level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The count.
    pub count: usize,
    /// The total.
    pub of: usize,
    /// The observed share; NaN if the total is 0.
    pub observed: f64,
    /// Lower bound of the true share.
    pub lower: f64,
    /// Upper bound of the true share.
    pub upper: f64,
}

impl Share {
    /// `count` of `of`.
    pub fn new(count: usize, of: usize) -> Self {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let (hits, misses) = (count as f64, of.saturating_sub(count) as f64);
        // The parameters of the beta distribution are positive unless the bound is 0 or 1.
        let bound = |first: f64, second: f64, probability: f64, otherwise: f64| {
            Beta::new(first, second).map_or(otherwise, |beta| beta.inverse_cdf(probability))
        };
        Self {
            count,
            of,
            observed: hits / of as f64,
            lower: bound(hits, misses + 1.0, tail, 0.0),
            upper: bound(hits + 1.0, misses, 1.0 - tail, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_none_and_all_have_a_closed_form() {
        let none = Share::new(0, 2000);
        assert_eq!((none.observed, none.lower), (0.0, 0.0));
        assert!(
            (none.upper - (1.0 - 0.025f64.powf(1.0 / 2000.0))).abs() < 1e-9,
            "{none:?}"
        );
        let all = Share::new(30, 30);
        assert_eq!(all.upper, 1.0);
        assert!((all.lower - 0.025f64.powf(1.0 / 30.0)).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn bounds_leave_a_tail_of_the_binomial_on_each_side() {
        // By definition P(X ≥ count | lower) and P(X ≤ count | upper) are 2.5 %; here they are summed term by term.
        for (count, of) in [(1usize, 20usize), (5, 100), (20, 2000), (480, 500)] {
            let share = Share::new(count, of);
            let at_most = |most: usize, chance: f64| {
                let mut log_term = of as f64 * (-chance).ln_1p();
                let mut sum = log_term.exp();
                for hits in 1..=most {
                    log_term += ((of - hits + 1) as f64 / hits as f64).ln() + (chance / (1.0 - chance)).ln();
                    sum += log_term.exp();
                }
                sum
            };
            assert!((at_most(count, share.upper) - 0.025).abs() < 1e-6, "{share:?}");
            assert!(
                (1.0 - at_most(count - 1, share.lower) - 0.025).abs() < 1e-6,
                "{share:?}"
            );
        }
    }
}
