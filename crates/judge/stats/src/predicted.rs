//! Predictions of a model in place of measurements: likeliest times, and how far each may be off.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::criteria::check_confidence;
use crate::summary::mean;
use crate::{Error, Interval, Origin};

/// One predicted time a side, with the standard deviation of its logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PredictedPair {
    /// Likeliest time of the baseline, in seconds.
    pub baseline: f64,
    /// Likeliest time of the candidate, in seconds.
    pub candidate: f64,
    /// Standard deviation of the logarithm of the baseline's true time over the predicted one.
    pub baseline_deviation: f64,
    /// Standard deviation of the same logarithm for the candidate.
    pub candidate_deviation: f64,
}

/// The interval of a predicted speed-up, with log-normal errors that are independent between the two sides.
///
/// # Errors
/// Times that are not positive and finite, deviations that are not positive, a confidence outside (0.5, 1). A
/// deviation of zero on both sides is refused: no model is exact, and a width of zero would make any difference a
/// result.
pub fn predicted_interval(pair: &PredictedPair, confidence: f64) -> Result<Interval, Error> {
    for (name, value) in [("baseline", pair.baseline), ("candidate", pair.candidate)] {
        if !(value.is_finite() && value > 0.0) {
            let rule = "a predicted time must be positive and finite";
            return Err(Error::Predicted { name, value, rule });
        }
    }
    between(
        pair.baseline.ln() - pair.candidate.ln(),
        [pair.baseline_deviation, pair.candidate_deviation],
        confidence,
    )
}

/// The interval of the geometric mean over a suite. A model errs alike on all problems of a suite, so its deviation is
/// the mean of the problems' deviations, and a longer suite does not narrow the interval.
///
/// # Errors
/// As [`predicted_interval`], and a suite without problems.
pub fn predicted_suite(pairs: &[PredictedPair], confidence: f64) -> Result<Interval, Error> {
    if pairs.is_empty() {
        return Err(Error::EmptySuite);
    }
    let mean_of = |figure: fn(&PredictedPair) -> f64| mean(&pairs.iter().map(figure).collect::<Vec<_>>());
    between(
        mean_of(|pair| pair.baseline.ln() - pair.candidate.ln()),
        [
            mean_of(|pair| pair.baseline_deviation),
            mean_of(|pair| pair.candidate_deviation),
        ],
        confidence,
    )
}

fn between(estimate: f64, deviations: [f64; 2], confidence: f64) -> Result<Interval, Error> {
    check_confidence(confidence)?;
    let deviation = deviations[0].hypot(deviations[1]);
    if !(deviation.is_finite() && deviation > 0.0 && deviations.iter().all(|one| *one >= 0.0)) {
        return Err(Error::Predicted {
            name: "deviation",
            value: deviation,
            rule: "must be positive and finite; without one, the speed-up has no interval",
        });
    }
    let slack = deviation * Normal::standard().inverse_cdf((1.0 + confidence) / 2.0);
    Ok(Interval {
        estimate,
        lower: estimate - slack,
        upper: estimate + slack,
        origin: Origin::Predicted { confidence },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(baseline: f64, candidate: f64, deviations: [f64; 2]) -> PredictedPair {
        PredictedPair {
            baseline,
            candidate,
            baseline_deviation: deviations[0],
            candidate_deviation: deviations[1],
        }
    }

    #[test]
    fn the_bounds_by_hand() {
        // Deviations of 3 % and 4 % combine to 5 %, and 1.95996 standard deviations hold 95 %.
        let interval = predicted_interval(&pair(2.0, 1.0, [0.03, 0.04]), 0.95).unwrap();
        assert!((interval.estimate - 2f64.ln()).abs() < 1e-12);
        assert!((interval.half_width() - 0.05 * 1.959_964).abs() < 1e-6);
        assert_eq!(interval.origin, Origin::Predicted { confidence: 0.95 });
    }

    #[test]
    fn a_longer_suite_narrows_nothing() {
        let one = pair(2.0, 1.0, [0.3, 0.4]);
        let alone = predicted_interval(&one, 0.9).unwrap();
        let suite = predicted_suite(&[one, one, one, one], 0.9).unwrap();
        assert!((suite.half_width() - alone.half_width()).abs() < 1e-12);
        let mixed = predicted_suite(&[one, pair(1.0, 2.0, [0.1, 0.2])], 0.9).unwrap();
        assert!(mixed.estimate.abs() < 1e-12);
        assert!((mixed.half_width() - 0.2f64.hypot(0.3) * 1.644_854).abs() < 1e-5);
    }

    #[test]
    fn nothing_is_predicted_from_nonsense() {
        for wrong in [
            pair(0.0, 1.0, [0.1, 0.1]),
            pair(1.0, f64::NAN, [0.1, 0.1]),
            pair(1.0, 1.0, [0.0, 0.0]),
            pair(1.0, 1.0, [-0.1, 0.2]),
            pair(1.0, 1.0, [f64::NAN, 0.2]),
        ] {
            let refused = predicted_interval(&wrong, 0.95);
            assert!(matches!(refused, Err(Error::Predicted { .. })), "{wrong:?}");
        }
        assert!(predicted_interval(&pair(1.0, 1.0, [0.1, 0.1]), 1.0).is_err());
        assert_eq!(predicted_suite(&[], 0.95), Err(Error::EmptySuite));
    }
}
