//! Common rules that take every time as an independent observation. No verdict rests on them: they serve for comparison
//! on the same samples.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ranks::{RankSum, two_sided_p_value};
use crate::summary::{mean, variance};

/// Two-sided p-value of Welch's t-test of the hypothesis that `one` and `other` have the same mean, without assuming
/// equal variances, with the degrees of freedom of Welch and Satterthwaite.
///
/// None with fewer than 2 values on a side, with a value that is not finite, or when neither side varies.
pub fn welch_p_value(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() < 2 || other.len() < 2 || !all_finite(one, other) {
        return None;
    }
    let (count, other_count) = (one.len() as f64, other.len() as f64);
    let (error, other_error) = (variance(one) / count, variance(other) / other_count);
    let squared_error = error + other_error;
    if squared_error <= 0.0 {
        return None;
    }
    let statistic = (mean(one) - mean(other)) / squared_error.sqrt();
    let freedom =
        squared_error.powi(2) / (error.powi(2) / (count - 1.0) + other_error.powi(2) / (other_count - 1.0));
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * distribution.cdf(-statistic.abs()))
}

/// Two-sided p-value of the rank-sum test of Mann & Whitney of the hypothesis that a value of either side is equally
/// likely to be the greater: the normal approximation, corrected for ties and for continuity.
///
/// None with an empty side, with a value that is not finite, or when all values are the same.
pub fn mann_whitney_p_value(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.is_empty() || other.is_empty() || !all_finite(one, other) {
        return None;
    }
    let RankSum { distance, variance } = RankSum::of(one, other);
    (variance > 0.0).then(|| two_sided_p_value(distance, 0.5, variance))
}

fn all_finite(one: &[f64], other: &[f64]) -> bool {
    one.iter().chain(other).all(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: [f64; 6] = [10.1, 10.4, 9.9, 10.2, 11.7, 10.0];
    const OTHER: [f64; 5] = [10.4, 10.9, 10.6, 10.4, 12.9];

    #[test]
    fn as_scipy_has_it() {
        // scipy 1.17.1: ttest_ind(equal_var=False), mannwhitneyu(method="asymptotic").
        let welch = welch_p_value(&ONE, &OTHER).unwrap();
        assert!((welch - 0.271_542_969_034_918_26).abs() < 1e-12, "{welch}");
        let rank = mann_whitney_p_value(&ONE, &OTHER).unwrap();
        assert!((rank - 0.080_042_270_358_313_14).abs() < 1e-9, "{rank}");
    }

    #[test]
    fn nothing_is_said_without_spread_or_values() {
        assert_eq!(welch_p_value(&[1.0], &OTHER), None);
        assert_eq!(welch_p_value(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(welch_p_value(&[1.0, f64::NAN], &OTHER), None);
        assert_eq!(mann_whitney_p_value(&[], &OTHER), None);
        assert_eq!(mann_whitney_p_value(&[1.0, 1.0], &[1.0]), None);
        assert_eq!(mann_whitney_p_value(&[f64::INFINITY], &OTHER), None);
        // With one value a side no conclusion is possible, and the correction for continuity does not exceed 1.
        assert_eq!(mann_whitney_p_value(&[1.0], &[2.0]), Some(1.0));
    }

    proptest! {
        #[test]
        fn sides_and_units_do_not_matter(
            one in prop::collection::vec(1e-6..1e-2, 2..20),
            other in prop::collection::vec(1e-6..1e-2, 2..20),
        ) {
            for rule in [welch_p_value, mann_whitney_p_value] {
                let p_value = rule(&one, &other).unwrap();
                prop_assert!((0.0..=1.0).contains(&p_value));
                prop_assert!((rule(&other, &one).unwrap() - p_value).abs() < 1e-12);
                let doubled = |times: &[f64]| times.iter().map(|time| time * 2.0).collect::<Vec<_>>();
                prop_assert!((rule(&doubled(&one), &doubled(&other)).unwrap() - p_value).abs() < 1e-12);
            }
        }
    }
}
