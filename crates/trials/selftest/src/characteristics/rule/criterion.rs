//! The decision rule that criterion.rs documents ("Analysis Process" in its book), reimplemented: two bootstraps.
//!
//! A difference is significant if its t-statistic is extreme among those of samples drawn from the pooled calls of both
//! sides, p < 5 %. It counts as improved or regressed if, in addition, the whole 95 % interval of the relative change
//! of means is beyond the noise threshold of 1 %.

use gauntlet_stats::{Decision, quantile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{SIGNIFICANCE, mean};

/// Changes within this fraction count as noise: criterion's default.
const NOISE_THRESHOLD: f64 = 0.01;

/// Level of the interval of the change: criterion's default.
const CONFIDENCE: f64 = 0.95;

/// Resamples of each bootstrap. Criterion takes 100,000 by default; with a thousand, the bounds move by a few
/// hundredths of their distance, and thousands of comparisons have to be decided.
const RESAMPLES: usize = 1000;

/// Criterion's decision for a candidate measured after its baseline. A side with fewer than 2 calls decides nothing.
pub fn decide(baseline: &[f64], candidate: &[f64], seed: u64) -> Decision {
    if baseline.len() < 2 || candidate.len() < 2 {
        return Decision::Inconclusive;
    }
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    // Both conditions must hold; the interval is cheaper to compute, so it comes first.
    let decision = beyond_noise(baseline, candidate, &mut generator);
    if decision != Decision::Inconclusive && p_value(baseline, candidate, &mut generator) < SIGNIFICANCE {
        decision
    } else {
        Decision::Inconclusive
    }
}

/// The decision by the interval of the relative change of means alone.
fn beyond_noise(baseline: &[f64], candidate: &[f64], generator: &mut ChaCha8Rng) -> Decision {
    let mut changes = Vec::with_capacity(RESAMPLES);
    let (mut old, mut new) = (baseline.to_vec(), candidate.to_vec());
    for _ in 0..RESAMPLES {
        resample(&mut old, baseline, generator);
        resample(&mut new, candidate, generator);
        changes.push(mean(&new) / mean(&old) - 1.0);
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    if quantile(&changes, 1.0 - tail) < -NOISE_THRESHOLD {
        Decision::Adopt
    } else if quantile(&changes, tail) > NOISE_THRESHOLD {
        Decision::Regression
    } else {
        Decision::Inconclusive
    }
}

/// The two-sided p-value: twice the smaller share of resampled statistics on one side of the observed one.
fn p_value(baseline: &[f64], candidate: &[f64], generator: &mut ChaCha8Rng) -> f64 {
    let observed = t_statistic(baseline, candidate);
    let together = [baseline, candidate].concat();
    let (mut old, mut new) = (baseline.to_vec(), candidate.to_vec());
    let below = (0..RESAMPLES)
        .filter(|_| {
            resample(&mut old, &together, generator);
            resample(&mut new, &together, generator);
            t_statistic(&old, &new) < observed
        })
        .count();
    2.0 * below.min(RESAMPLES - below) as f64 / RESAMPLES as f64
}

/// Fills `target` with values drawn with replacement.
fn resample(target: &mut [f64], values: &[f64], generator: &mut ChaCha8Rng) {
    for value in target {
        // Drawn as 32 bits, so that all platforms draw the same.
        *value = values[generator.random_range(0..values.len() as u32) as usize];
    }
}

/// Welch's t-statistic.
fn t_statistic(one: &[f64], other: &[f64]) -> f64 {
    let squared_error = |values: &[f64], centre: f64| {
        let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
        let count = values.len() as f64;
        squares / (count - 1.0) / count
    };
    let (first, second) = (mean(one), mean(other));
    (first - second) / (squared_error(one, first) + squared_error(other, second)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(3)
    }

    fn pattern(count: usize, centre: f64, spread: f64) -> Vec<f64> {
        (0..count)
            .map(|index| centre + spread * ((index * 7 % 11) as f64 / 5.0 - 1.0))
            .collect()
    }

    #[test]
    fn the_statistic_by_hand() {
        // Means 2 and 5, variances 1 and 1, three values each: −3 / √(1/3 + 1/3).
        let statistic = t_statistic(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert!((statistic + 3.0 / (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_bootstrapped_p_value_is_near_students() {
        let (one, other) = (pattern(55, 1.0, 0.1), pattern(55, 1.02, 0.1));
        let students = gauntlet_stats::welch_p_value(&one, &other).unwrap();
        let bootstrapped = p_value(&one, &other, &mut generator());
        assert!(students > 0.01 && students < 0.5, "{students}");
        assert!(
            (bootstrapped - students).abs() < 0.05,
            "{bootstrapped} {students}"
        );
    }

    #[test]
    fn a_change_must_be_beyond_the_noise_as_a_whole() {
        // Changes of 0.8 % and 1.2 %, with a precision of a ten-thousandth.
        let old = pattern(110, 1.0, 0.0005);
        let new = |centre| pattern(110, centre, 0.0005);
        assert_eq!(decide(&old, &new(1.008), 1), Decision::Inconclusive);
        assert_eq!(decide(&old, &new(1.012), 1), Decision::Regression);
        assert_eq!(decide(&old, &new(0.988), 1), Decision::Adopt);
        // A change of 1.2 % with a precision of a percent.
        assert_eq!(
            decide(&pattern(110, 1.0, 0.1), &pattern(110, 1.012, 0.1), 1),
            Decision::Inconclusive
        );
        assert_eq!(decide(&[1.0], &old, 1), Decision::Inconclusive);
    }
}
