//! The crate's figures against scipy's and numpy's: `reference/scipy.json`, written by
//! `scripts/reference/reference.py`.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_stats::{
    Aim, Resampling, SignFlip, Spread, Trend, WarmUp, holm_adjusted, log_speedup, mann_whitney_p_value,
    power, quantile, welch_p_value,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// statrs computes the normal distribution to about 3e-10.
const CLOSE: f64 = 1e-9;

fn cases<T: DeserializeOwned>(section: &str) -> Vec<T> {
    let mut reference: Value = serde_json::from_str(include_str!("reference/scipy.json")).unwrap();
    let cases: Vec<T> = serde_json::from_value(reference[section].take()).unwrap();
    assert!(!cases.is_empty());
    cases
}

fn assert_close(found: f64, expected: f64, tolerance: f64, case: &str) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{case}: {found}, by scipy {expected}"
    );
}

fn slices(sequences: &[Vec<f64>]) -> Vec<&[f64]> {
    sequences.iter().map(Vec::as_slice).collect()
}

#[test]
fn holm() {
    #[derive(Deserialize)]
    struct Case {
        p_values: Vec<f64>,
        adjusted: Vec<f64>,
    }
    for case in cases::<Case>("holm") {
        for (found, expected) in holm_adjusted(&case.p_values).into_iter().zip(case.adjusted) {
            assert_close(found, expected, 1e-15, &format!("{:?}", case.p_values));
        }
    }
}

#[test]
fn sign_flips() {
    #[derive(Deserialize)]
    struct Case {
        means: Vec<f64>,
        faster: f64,
        slower: f64,
        two_sided: f64,
    }
    let resampling = Resampling {
        resamples: 200,
        seed: 0,
    };
    for case in cases::<Case>("sign_flips") {
        let found = SignFlip::new(&case.means, resampling).unwrap();
        let name = format!("{:?}", case.means);
        assert!(found.exact);
        assert_close(found.faster, case.faster, 1e-15, &name);
        assert_close(found.slower, case.slower, 1e-15, &name);
        assert_close(found.two_sided, case.two_sided, 1e-15, &name);
    }
}

#[test]
fn trends() {
    #[derive(Deserialize)]
    struct Case {
        sequences: Vec<Vec<f64>>,
        p_value: f64,
        slope: Option<f64>,
    }
    for case in cases::<Case>("trends") {
        let found = Trend::of(&slices(&case.sequences)).unwrap();
        let name = format!("{:?}", case.sequences);
        assert_close(found.p_value, case.p_value, CLOSE, &name);
        if let Some(slope) = case.slope {
            assert_close(found.slope, slope, 1e-12, &name);
        }
    }
}

#[test]
fn warm_ups() {
    #[derive(Deserialize)]
    struct Case {
        sequences: Vec<Vec<f64>>,
        p_value: f64,
    }
    for case in cases::<Case>("warm_ups") {
        let found = WarmUp::of(&slices(&case.sequences)).unwrap();
        assert_close(
            found.p_value,
            case.p_value,
            CLOSE,
            &format!("{:?}", case.sequences),
        );
    }
}

#[test]
fn powers() {
    #[derive(Deserialize)]
    struct Case {
        processes: usize,
        confidence: f64,
        distance: f64,
        power: f64,
    }
    // A spread of 1 % and a true effect a given number of spreads over the boundary.
    let boundary = 0.02;
    let spread = Spread {
        between: 0.01,
        within: 0.0,
    };
    for case in cases::<Case>("powers") {
        let aim = Aim {
            effect: (log_speedup(boundary) + 0.01 * case.distance).exp_m1(),
            boundary,
            confidence: case.confidence,
            power: 0.5,
        };
        let found = power(&spread, case.processes, 1, &aim).unwrap();
        let name = format!(
            "{} processes, {} away, {}",
            case.processes, case.distance, case.confidence
        );
        assert_close(found, case.power, 1e-8, &name);
    }
}

#[test]
fn rivals() {
    #[derive(Deserialize)]
    struct Case {
        one: Vec<f64>,
        other: Vec<f64>,
        welch: f64,
        mann_whitney: f64,
        mann_whitney_exact: Option<f64>,
    }
    for case in cases::<Case>("rivals") {
        let name = format!("{:?} against {:?}", case.one, case.other);
        assert_close(
            welch_p_value(&case.one, &case.other).unwrap(),
            case.welch,
            1e-10,
            &name,
        );
        let found = mann_whitney_p_value(&case.one, &case.other).unwrap();
        assert_close(found, case.mann_whitney, CLOSE, &name);
        if let Some(exact) = case.mann_whitney_exact {
            assert_close(found, exact, 0.01, &name);
        }
    }
}

#[test]
fn quantiles() {
    #[derive(Deserialize)]
    struct Case {
        values: Vec<f64>,
        probability: f64,
        quantile: f64,
    }
    for case in cases::<Case>("quantiles") {
        let found = quantile(&case.values, case.probability);
        let name = format!("{} of {} values", case.probability, case.values.len());
        assert_close(found, case.quantile, 1e-12, &name);
    }
}
