//! An estimate of one speed-up, its bounds, and the origin of the bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::summary::mean;
use crate::{Error, speedup_fraction};

/// An interval of log speed-up, `lower ≤ estimate ≤ upper`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Best guess of the log speed-up.
    pub estimate: f64,
    /// Lower bound of the log speed-up.
    pub lower: f64,
    /// Upper bound of the log speed-up.
    pub upper: f64,
    /// What the bounds mean.
    pub origin: Origin,
}

/// Where an interval's bounds come from. A declared or predicted bound must never be shown as a measured one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Origin {
    /// Measured blocks, resampled.
    Measured {
        /// Two-sided confidence level of the interval.
        confidence: f64,
        /// How many worker processes it is based on.
        processes: usize,
    },
    /// Recorded single numbers with a declared uncertainty: worst-case bounds, no statistics.
    Declared,
    /// Calls of one process a side, in contiguous batches: nothing is known about other processes.
    Calls {
        /// Two-sided confidence level of the interval, for further calls of the same two processes.
        confidence: f64,
        /// How many batches of calls it is based on.
        batches: usize,
    },
    /// A model's likeliest times with the model's own error: nothing was measured.
    Predicted {
        /// Two-sided confidence level of the interval, if the model's error is as stated.
        confidence: f64,
    },
}

impl Origin {
    /// Whether the bounds are predicted, without any measurement.
    pub fn is_predicted(&self) -> bool {
        matches!(self, Self::Predicted { .. })
    }
}

impl Interval {
    /// The distance from the estimate to the farther bound, in log speed-up.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.estimate).max(self.estimate - self.lower)
    }

    /// The estimate as a fraction of speed-up (0.02 = 2 % faster).
    pub fn estimate_fraction(&self) -> f64 {
        speedup_fraction(self.estimate)
    }

    /// The lower bound as a fraction of speed-up.
    pub fn lower_fraction(&self) -> f64 {
        speedup_fraction(self.lower)
    }

    /// The upper bound as a fraction of speed-up.
    pub fn upper_fraction(&self) -> f64 {
        speedup_fraction(self.upper)
    }
}

/// One recorded time a side, each true only to within a declared fraction of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredPair {
    /// Recorded time of the baseline, in seconds (any unit, if both have the same).
    pub baseline: f64,
    /// Recorded time of the candidate, in the same unit.
    pub candidate: f64,
    /// Each true time is declared to lie within `time · (1 ± relative_uncertainty)`; between 0 and 1, both
    /// excluded.
    pub relative_uncertainty: f64,
}

/// Worst-case bounds of the speed-up of two recorded times b and c with relative uncertainty u:
/// `ln(b(1−u) / c(1+u)) … ln(b(1+u) / c(1−u))`, that is `ln(b/c) ∓ ln((1+u)/(1−u))`. Interval arithmetic, not
/// statistics.
///
/// # Errors
/// Times that are not positive and finite; an uncertainty that is not inside (0, 1). Zero is refused: no
/// recorded time is exact, and a width of zero would make any difference a result.
pub fn declared_interval(
    baseline: f64,
    candidate: f64,
    relative_uncertainty: f64,
) -> Result<Interval, Error> {
    for (name, value) in [("baseline", baseline), ("candidate", candidate)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Error::Declared {
                name,
                value,
                rule: "a recorded time must be positive and finite",
            });
        }
    }
    if !(relative_uncertainty > 0.0 && relative_uncertainty < 1.0) {
        return Err(Error::Declared {
            name: "relative_uncertainty",
            value: relative_uncertainty,
            rule: "must lie between 0 and 1, both excluded; without one, the speed-up has no interval",
        });
    }
    let estimate = baseline.ln() - candidate.ln();
    let slack = relative_uncertainty.ln_1p() - (-relative_uncertainty).ln_1p();
    Ok(Interval {
        estimate,
        lower: estimate - slack,
        upper: estimate + slack,
        origin: Origin::Declared,
    })
}

/// Worst-case bounds of the geometric mean speed-up over a suite: the means of the problems' bounds.
///
/// # Errors
/// A suite without problems.
pub fn declared_suite(problems: &[Interval]) -> Result<Interval, Error> {
    if problems.is_empty() {
        return Err(Error::EmptySuite);
    }
    let mean_of = |bound: fn(&Interval) -> f64| mean(&problems.iter().map(bound).collect::<Vec<_>>());
    Ok(Interval {
        estimate: mean_of(|problem| problem.estimate),
        lower: mean_of(|problem| problem.lower),
        upper: mean_of(|problem| problem.upper),
        origin: Origin::Declared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn declared_bounds_by_hand() {
        let interval = declared_interval(110.0, 100.0, 0.02).unwrap();
        assert!((interval.estimate_fraction() - 0.10).abs() < 1e-12);
        assert!((interval.lower_fraction() - (110.0 * 0.98 / (100.0 * 1.02) - 1.0)).abs() < 1e-12);
        assert!((interval.upper_fraction() - (110.0 * 1.02 / (100.0 * 0.98) - 1.0)).abs() < 1e-12);
        assert_eq!(interval.origin, Origin::Declared);
    }

    #[test]
    fn nothing_is_declared_from_nonsense() {
        for (baseline, candidate, uncertainty, culprit) in [
            (0.0, 1.0, 0.1, "baseline"),
            (1.0, f64::NAN, 0.1, "candidate"),
            (1.0, 1.0, 0.0, "relative_uncertainty"),
            (1.0, 1.0, 1.0, "relative_uncertainty"),
            (1.0, 1.0, f64::NAN, "relative_uncertainty"),
        ] {
            let error = declared_interval(baseline, candidate, uncertainty).unwrap_err();
            assert!(
                matches!(error, Error::Declared { name, .. } if name == culprit),
                "{error}"
            );
        }
    }

    #[test]
    fn suite_bounds_are_geometric_means() {
        let quadrupled = declared_interval(4.0, 1.0, 0.01).unwrap();
        let unchanged = declared_interval(1.0, 1.0, 0.03).unwrap();
        let suite = declared_suite(&[quadrupled.clone(), unchanged.clone()]).unwrap();
        assert!((suite.estimate_fraction() - 1.0).abs() < 1e-12);
        assert!((suite.lower - (quadrupled.lower + unchanged.lower) / 2.0).abs() < 1e-12);
        assert_eq!(declared_suite(&[]), Err(Error::EmptySuite));
    }

    proptest! {
        #[test]
        fn bounds_hold_for_every_truth_inside(
            baseline in 1e-6..1.0f64,
            candidate in 1e-6..1.0f64,
            uncertainty in 0.001..0.5f64,
            places in (-1.0..1.0f64, -1.0..1.0f64),
        ) {
            let interval = declared_interval(baseline, candidate, uncertainty).unwrap();
            let true_baseline = baseline * (1.0 + places.0 * uncertainty);
            let true_candidate = candidate * (1.0 + places.1 * uncertainty);
            let truth = (true_baseline / true_candidate).ln();
            prop_assert!(interval.lower - 1e-12 <= truth && truth <= interval.upper + 1e-12);
            let swapped = declared_interval(candidate, baseline, uncertainty).unwrap();
            prop_assert!((swapped.lower + interval.upper).abs() < 1e-12);
        }
    }
}
