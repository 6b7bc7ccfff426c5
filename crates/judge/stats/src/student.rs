//! Student's t on process effects.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

use crate::summary::{mean, standard_deviation};

/// Half the width of the two-sided Student interval of the mean of `means`: t · s / √n.
pub(crate) fn half_width(means: &[f64], confidence: f64) -> f64 {
    half_width_of(means.len(), standard_deviation(means), confidence)
}

/// What the mean of what `values` are drawn from is at least, at this one-sided confidence, by Student's bound. None with
/// fewer than two values.
pub fn least_mean(values: &[f64], confidence: f64) -> Option<f64> {
    (values.len() > 1).then(|| mean(values) - half_width(values, 2.0 * confidence - 1.0))
}

/// The same from the standard deviation between `processes` means.
pub(crate) fn half_width_of(processes: usize, standard_deviation: f64, confidence: f64) -> f64 {
    critical_value(processes, confidence) * standard_deviation / (processes as f64).sqrt()
}

/// The probability that Student's interval from `processes` means lies wholly over a boundary that is `distance`
/// standard deviations of a process mean below the true mean: P(T′ > t_{1−α/2, n−1}), where T′ is noncentral t with
/// noncentrality distance · √n.
pub(crate) fn power(processes: usize, distance: f64, confidence: f64) -> f64 {
    let noncentrality = distance * (processes as f64).sqrt();
    noncentral_upper_tail(processes, noncentrality, critical_value(processes, confidence))
}

/// Student's one-sided p-value of "the mean is under `threshold`", from independent `means`.
pub(crate) fn p_value_below(means: &[f64], threshold: f64) -> f64 {
    let difference = mean(means) - threshold;
    let error = standard_error(means);
    if error > 0.0 {
        lower_tail(means.len(), difference / error)
    } else if difference < 0.0 {
        0.0
    } else {
        1.0
    }
}

fn standard_error(means: &[f64]) -> f64 {
    standard_deviation(means) / (means.len() as f64).sqrt()
}

fn critical_value(processes: usize, confidence: f64) -> f64 {
    // From the lower tail: 1 − α/2 would lose the digits of a small α. With zero degrees of freedom there is no
    // distribution and no information; the interval is infinite.
    with_freedom(processes).map_or(f64::INFINITY, |distribution| {
        -distribution.inverse_cdf((1.0 - confidence) / 2.0)
    })
}

fn lower_tail(processes: usize, statistic: f64) -> f64 {
    with_freedom(processes).map_or(1.0, |distribution| distribution.cdf(statistic))
}

/// P((Z + δ) / S > t) for t > 0, standard normal Z and S = √(χ²/ν): the integral of Φ(δ − t·s) over the density of S,
/// by Simpson's rule on the range where the factors vary in double precision.
fn noncentral_upper_tail(processes: usize, noncentrality: f64, statistic: f64) -> f64 {
    /// Beyond this many standard deviations the tail of a normal distribution is negligible in double precision.
    const REACH: f64 = 9.0;
    const STEPS: usize = 400;
    let freedom = processes as f64 - 1.0;
    let Ok(chi_squared) = ChiSquared::new(freedom) else {
        return 0.0;
    };
    // S lies within about REACH / √(2ν) of 1: 1 / √(2ν) approximates its standard deviation.
    let width = REACH / (2.0 * freedom).sqrt();
    let from = ((noncentrality - REACH) / statistic).max(1.0 - width).max(0.0);
    let to = ((noncentrality + REACH) / statistic).min(1.0 + width);
    // Under `from`, Φ is 1 (or the density 0).
    let sure = chi_squared.cdf(freedom * from * from);
    if to <= from {
        return sure;
    }
    let constant = std::f64::consts::LN_2 + freedom / 2.0 * (freedom / 2.0).ln() - ln_gamma(freedom / 2.0);
    let integrand = |s: f64| {
        let density = s.powf(freedom - 1.0) * (constant - freedom * s * s / 2.0).exp();
        density * Normal::standard().cdf(noncentrality - statistic * s)
    };
    let step = (to - from) / STEPS as f64;
    let weighted: f64 = (0..=STEPS)
        .map(|place| {
            let weight = match place {
                0 | STEPS => 1.0,
                _ if place % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * integrand(from + step * place as f64)
        })
        .sum();
    (sure + weighted * step / 3.0).min(1.0)
}

fn with_freedom(processes: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, processes as f64 - 1.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    #[test]
    fn critical_values_of_the_printed_tables() {
        // (processes, confidence, t): any table of Student's distribution.
        for (processes, confidence, expected) in [
            (2, 0.95, 12.706_204_736),
            (3, 0.95, 4.302_652_730),
            (4, 0.95, 3.182_446_305),
            (6, 0.95, 2.570_581_836),
            (6, 0.99, 4.032_142_984),
            (11, 0.998, 4.143_700_494),
        ] {
            let value = critical_value(processes, confidence);
            assert!(
                (value / expected - 1.0).abs() < 1e-8,
                "{processes} {confidence}: {value}"
            );
        }
        assert_eq!(critical_value(1, 0.95), f64::INFINITY);
    }

    /// `tests/reference/scipy.json`, written by `scripts/reference/reference.py`.
    fn reference<T: DeserializeOwned>(section: &str) -> Vec<T> {
        let text = include_str!("../tests/reference/scipy.json");
        let mut reference: serde_json::Value = serde_json::from_str(text).unwrap();
        serde_json::from_value(reference[section].take()).unwrap()
    }

    #[test]
    fn quantiles_as_scipy_has_them() {
        #[derive(Deserialize)]
        struct Case {
            processes: usize,
            confidence: f64,
            quantile: f64,
        }
        for case in reference::<Case>("student_quantiles") {
            let found = critical_value(case.processes, case.confidence);
            let (processes, confidence) = (case.processes, case.confidence);
            assert!(
                (found / case.quantile - 1.0).abs() < 1e-8,
                "{processes} {confidence}: {found}"
            );
        }
    }

    #[test]
    fn p_values_as_scipy_has_them() {
        #[derive(Deserialize)]
        struct Case {
            means: Vec<f64>,
            threshold: f64,
            p_value: f64,
        }
        for case in reference::<Case>("student_p_values") {
            let found = p_value_below(&case.means, case.threshold);
            assert!((found - case.p_value).abs() < 1e-10, "{:?}: {found}", case.means);
        }
    }

    #[test]
    fn power_is_the_error_without_an_effect_and_grows_to_1() {
        for processes in [2, 4, 9, 200] {
            assert!((power(processes, 0.0, 0.95) - 0.025).abs() < 1e-7, "{processes}");
            let powers = [0.0, 0.2, 0.5, 1.0, 2.0, 50.0].map(|distance| power(processes, distance, 0.95));
            assert!(powers.is_sorted(), "{processes}: {powers:?}");
        }
        assert!(power(9, 50.0, 0.95) > 1.0 - 1e-9);
    }

    #[test]
    fn p_value_agrees_with_the_interval() {
        let means = [0.011, 0.019, 0.006, 0.024, 0.013];
        let upper = mean(&means) + half_width(&means, 0.95);
        assert!((p_value_below(&means, upper) - 0.025).abs() < 1e-9);
        assert!(p_value_below(&means, mean(&means)) - 0.5 < 1e-12);
        assert_eq!(p_value_below(&[0.1, 0.1], 0.2), 0.0);
        assert_eq!(p_value_below(&[0.1, 0.1], 0.1), 1.0);
    }
}
