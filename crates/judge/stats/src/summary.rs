//! Robust summaries of measured times. All return NaN for an empty list.

use statrs::statistics::{Data, Distribution as _, Median, OrderStatistics};

/// The median; the mean of the two middle values of an even count.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    Median::median(&Data::new(values.to_vec()))
}

/// The `probability` quantile, definition 8 of Hyndman & Fan 1996 ("Sample Quantiles in Statistical
/// Packages"), which is approximately median-unbiased whatever the distribution. NaN outside 0…1.
pub fn quantile(values: &[f64], probability: f64) -> f64 {
    Data::new(values.to_vec()).quantile(probability)
}

/// The quantile of a slot's calls that stands for the slot: the lower quartile. `gauntlet selftest` compares it with
/// others, see `docs/explanation/operating-characteristics.md`.
const TYPICAL: f64 = 0.25;

/// The call that stands for calls made one after another: the lower quartile. A neighbour that lengthens fewer than three
/// quarters of them hardly moves it; a lower quantile would be moved even less, but says less of the calls that callers
/// get.
pub fn typical_call(calls: &[f64]) -> f64 {
    quantile(calls, TYPICAL)
}

/// The mean of the middle three tenths of the values, the outer ones of these counted in part. It lies near the median, and varies
/// less. NaN for an empty list.
pub(crate) fn middle(values: &[f64]) -> f64 {
    const PART: f64 = 0.3;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let [from, to] = [0.5 - PART / 2.0, 0.5 + PART / 2.0].map(|place| place * count);
    let parts = (0..).zip(&sorted).map(|(place, value)| {
        let place = f64::from(place);
        let part = to.min(place + 1.0) - from.max(place);
        part.max(0.0) * value
    });
    parts.sum::<f64>() / (to - from)
}

/// The arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance (divisor n − 1); NaN for fewer than two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    Data::new(values.to_vec()).variance().unwrap_or(f64::NAN)
}

/// The sample standard deviation (divisor n − 1); NaN for fewer than two values.
pub(crate) fn standard_deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_empty() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_middle_by_hand() {
        assert_eq!(middle(&[5.0, 1.0, 2.0]), 2.0);
        assert!((middle(&[1.0, 9.0, 2.0, 4.0]) - 3.0).abs() < 1e-12);
        // Of ten: 3.5 … 6.5, so half of the fourth, the fifth and sixth, and half of the seventh.
        let ten: Vec<f64> = (1..=10).map(|value| f64::from(value * value)).collect();
        assert!((middle(&ten) - (8.0 + 25.0 + 36.0 + 24.5) / 3.0).abs() < 1e-12);
        assert!(middle(&[]).is_nan());
    }

    #[test]
    fn quantiles_follow_definition_8() {
        // h = (n + 1/3) p + 1/3 with n = 5: p = 0.25 gives h = 5/3.
        let values = [50.0, 10.0, 40.0, 20.0, 30.0];
        assert!((quantile(&values, 0.25) - (10.0 + 10.0 * 2.0 / 3.0)).abs() < 1e-12);
        assert_eq!(quantile(&values, 0.0), 10.0);
        assert_eq!(quantile(&values, 1.0), 50.0);
        assert!(quantile(&values, 1.5).is_nan());
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn variance_by_hand() {
        // Mean 4: (4 + 0 + 4) / 2.
        assert_eq!(
            (variance(&[2.0, 4.0, 6.0]), standard_deviation(&[2.0, 4.0, 6.0])),
            (4.0, 2.0)
        );
        assert!(variance(&[2.0]).is_nan());
    }
}
