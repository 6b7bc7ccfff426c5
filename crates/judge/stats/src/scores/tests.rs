use proptest::prelude::*;

use super::*;

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-12
}

#[test]
fn brier_scores_by_hand() {
    // 0.3² + 0.2² + 0.1² = 0.14; certainty is 0 or 1 + 1; evenly over three: 4/9 + 1/9 + 1/9.
    assert!(is_near(brier_score(&[0.7, 0.2, 0.1], 0), 0.14));
    assert_eq!(brier_score(&[1.0, 0.0, 0.0], 0), 0.0);
    assert_eq!(brier_score(&[1.0, 0.0, 0.0], 2), 2.0);
    assert!(is_near(brier_score(&[1.0 / 3.0; 3], 1), 2.0 / 3.0));
}

#[test]
fn logarithmic_scores_by_hand() {
    // −ln(0.99 · 0.7 + 0.01 / 3), −ln(0.01 / 9) and −ln(0.99 + 0.01 / 9), from Python's math.log.
    assert!(is_near(
        logarithmic_score(&[0.7, 0.2, 0.1], 0),
        0.361_926_806_093_681_05
    ));
    let mut certain = [0.0; 9];
    certain[4] = 1.0;
    assert!(is_near(logarithmic_score(&certain, 3), 6.802_394_763_324_311));
    assert!(is_near(logarithmic_score(&certain, 4), 0.008_928_630_744_301_431));
}

#[test]
fn pinball_losses_by_hand() {
    // Half of the distance on either side of a median; at 0.9, missing from below costs nine times as much.
    assert!(is_near(pinball_loss(1.0, 0.5, 3.0), 1.0) && is_near(pinball_loss(3.0, 0.5, 1.0), 1.0));
    assert!(is_near(pinball_loss(0.0, 0.9, 2.0), 1.8) && is_near(pinball_loss(2.0, 0.9, 0.0), 0.2));
    let quantiles = LogQuantiles {
        q10: -0.1,
        q50: 0.0,
        q90: 0.3,
    };
    // 0.1 · 0.3, 0.5 · 0.2 and 0.1 · 0.1.
    let [low, middle, high] = quantiles.pinball_losses(0.2);
    assert!(is_near(low, 0.03) && is_near(middle, 0.1) && is_near(high, 0.01));
}

/// The expected scores are 2 ∫ pinball loss dτ over 400,000 midpoints of τ in Python, with the quantile function q50 +
/// (τ − ½) · (q50 − q10, or above the middle q90 − q50) / 0.4; they do not use the formula under test.
#[test]
fn ranked_scores_agree_with_an_integral_over_pinball_losses() {
    let skewed = |found| ([-0.1, 0.0, 0.3], found);
    for (([q10, q50, q90], found), score) in [
        (
            ([1.5f64.ln(), 1.65f64.ln(), 1.8f64.ln()], 0.74f64.ln()),
            0.761_303_347_151_641,
        ),
        (skewed(0.2), 0.095),
        (skewed(-0.5), 0.479_166_666_667_182),
        (skewed(0.05), 0.045),
        (skewed(2.0), 1.854_166_666_667_18),
        (([0.0, 0.0, 0.4], 0.1), 0.051_666_666_667_187_7),
    ] {
        let crps = LogQuantiles { q10, q50, q90 }.crps(found);
        assert!((crps - score).abs() < 1e-9, "{crps} and not {score}");
    }
}

#[test]
fn ranked_scores_by_hand() {
    // Uniform on −1…1: at its middle 2 · ∫ ((x + 1) / 2)² dx from −1 to 0 = 1/6.
    let uniform = LogQuantiles {
        q10: -0.8,
        q50: 0.0,
        q90: 0.8,
    };
    assert!(is_near(uniform.crps(0.0), 1.0 / 6.0));
    let point = LogQuantiles {
        q10: 0.2,
        q50: 0.2,
        q90: 0.2,
    };
    assert!(is_near(point.crps(-0.3), 0.5) && point.crps(0.2) == 0.0);
    assert!(uniform.covers(0.8) && !uniform.covers(0.81));
    assert!(uniform.overlaps(0.8, 1.0) && !uniform.overlaps(0.81, 1.0) && uniform.overlaps(-2.0, 2.0));
}

#[test]
fn parts_by_hand() {
    // Two classes. 0.8 was stated four times and came true three times, 0.3 was stated twice and never came true.
    let says = |first: f64, happened| (vec![first, 1.0 - first], happened);
    let forecasts = [
        says(0.8, 0),
        says(0.8, 0),
        says(0.8, 0),
        says(0.8, 1),
        says(0.3, 1),
        says(0.3, 1),
    ];
    let parts = brier_parts(&forecasts).unwrap();
    // For each class: base rate ½; (4 · 0.05² + 2 · 0.3²) / 6; (4 · 0.25² + 2 · 0.5²) / 6; ½ · ½.
    assert!(is_near(
        parts.calibration,
        2.0 * (4.0 * 0.0025 + 2.0 * 0.09) / 6.0
    ));
    assert!(is_near(parts.resolution, 2.0 * (4.0 * 0.0625 + 2.0 * 0.25) / 6.0));
    assert!(is_near(parts.uncertainty, 0.5));
    assert_eq!(brier_parts(&[]), None);
}

#[test]
fn skill_and_shrinkage_by_hand() {
    assert_eq!(skill(0.5, 2.0), Some(0.75));
    assert_eq!(skill(0.5, 0.0), None);
    // Two values of mean 1 and a weight of 2: half-way to the expected value.
    assert_eq!(shrunk_mean(&[0.5, 1.5], 0.0, 2.0), 0.5);
    assert_eq!(shrunk_mean(&[], 0.7, 2.0), 0.7);
}

/// Odds over four classes that add up to 1, and what happened.
fn forecast() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (proptest::collection::vec(0.001..1.0f64, 4), 0..4usize).prop_map(|(weights, happened)| {
        let sum: f64 = weights.iter().sum();
        (weights.iter().map(|weight| weight / sum).collect(), happened)
    })
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_mean_score(forecasts in proptest::collection::vec(forecast(), 1..40)) {
        let mean = forecasts.iter().map(|(odds, happened)| brier_score(odds, *happened)).sum::<f64>()
            / forecasts.len() as f64;
        let parts = brier_parts(&forecasts).unwrap();
        prop_assert!((parts.calibration - parts.resolution + parts.uncertainty - mean).abs() < 1e-12);
        prop_assert!(parts.calibration >= 0.0 && parts.uncertainty >= 0.0);
    }

    #[test]
    fn nobody_gains_by_stating_other_odds_than_they_believe(
        (believed, _) in forecast(),
        (stated, _) in forecast(),
    ) {
        let expected = |score: fn(&[f64], usize) -> f64, odds: &[f64]| {
            believed.iter().enumerate().map(|(class, chance)| chance * score(odds, class)).sum::<f64>()
        };
        prop_assert!(expected(brier_score, &believed) <= expected(brier_score, &stated) + 1e-12);
        // The part spread evenly costs an honest forecaster at most a hundredth.
        prop_assert!(
            expected(logarithmic_score, &believed) <= expected(logarithmic_score, &stated) + EVEN_PART
        );
    }

    #[test]
    fn a_ranked_score_lies_between_nothing_and_the_distance(
        q50 in -1.0..1.0f64,
        below in 0.0..1.0f64,
        above in 0.0..1.0f64,
        found in -3.0..3.0f64,
    ) {
        let crps = LogQuantiles { q10: q50 - below, q50, q90: q50 + above }.crps(found);
        prop_assert!(crps >= 0.0 && crps <= (found - q50).abs() + 1.25 * (below + above));
        let mirrored = LogQuantiles { q10: -q50 - above, q50: -q50, q90: -q50 + below }.crps(-found);
        prop_assert!((crps - mirrored).abs() < 1e-12);
    }
}
