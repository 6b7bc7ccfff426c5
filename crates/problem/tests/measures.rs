#![expect(clippy::unwrap_used, reason = "tests")]
//! Error measures on outputs that are wrong in known ways.

use std::collections::BTreeSet;

use gauntlet_problem::{
    Coverage, ErrorMeasures, Expected, GemmShape, GroupedGemm, InputKind, Inputs, Oracle, Output, Problem,
    Tolerance,
};

const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-3,
    absolute: 1e-3,
};

fn problem() -> Problem {
    let groups = [(6, 40), (0, 8), (5, 8)]
        .map(|(m, n)| GemmShape { m, n, k: 64 })
        .to_vec();
    Problem::GroupedGemm(GroupedGemm {
        groups,
        form: Default::default(),
        output: Default::default(),
    })
}

/// The oracle, and the output that is its rounding.
fn right(coverage: Coverage) -> (Expected, Output) {
    let problem = problem();
    let inputs = Inputs::generate(&problem, InputKind::Competition, 11);
    let full = Oracle::compute(&problem, &inputs, Coverage::Full).unwrap();
    let mut output = Output::poisoned(&problem);
    full.values().for_each(|(index, value)| output.set(index, value));
    (Oracle::compute(&problem, &inputs, coverage).unwrap(), output)
}

#[test]
fn the_rounded_oracle_is_right_in_every_measure() {
    let (expected, output) = right(Coverage::Full);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((measures.elements, measures.compared), (280, 280));
    assert_eq!(
        (measures.unwritten, measures.mismatches, measures.unequal),
        (0, 0, 0)
    );
    assert_eq!(measures.worst, None);
    // Competition data are quarters under 2048 in magnitude here: rounding to f16 costs nothing or next to nothing.
    assert!(measures.nrmse < 5e-4);
    assert_eq!(measures.parts.len(), 3);
    assert_eq!((measures.parts[1].compared, measures.parts[1].nrmse), (0, 0.0));
}

#[test]
fn an_element_never_written_is_found_even_where_nothing_was_sampled() {
    let (expected, mut output) = right(Coverage::Sampled {
        rows: 1,
        columns: 1,
        seed: 0,
    });
    let sampled: BTreeSet<usize> = expected.values().map(|(index, _)| index).collect();
    let elsewhere = (0..output.len()).find(|index| !sampled.contains(index)).unwrap();
    output.set(elsewhere, f64::NAN);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((measures.unwritten, measures.mismatches), (1, 0));
    assert_eq!(measures.compared, 40 + 5 + 8 + 4);
    assert!(
        measures.to_string().contains("1 of 280 NaN or never written"),
        "{measures}"
    );

    output.set(*sampled.first().unwrap(), f64::NAN);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((measures.unwritten, measures.mismatches), (2, 1));
    assert_eq!(measures.nrmse, f64::INFINITY);
}

#[test]
fn the_worst_element_is_named_with_its_place() {
    let (expected, mut output) = right(Coverage::Full);
    let index = 240 + 3 * 8 + 5;
    output.set(index, f64::from(output.get(index)) + 64.0);
    output.set(7, f64::from(output.get(7)) + 1.0);
    let measures = ErrorMeasures::between(
        &output,
        &expected,
        Tolerance {
            relative: 0.0,
            absolute: 2.0,
        },
    );
    let worst = measures.worst.unwrap();
    assert_eq!((worst.part, worst.row, worst.column), (2, 3, 5));
    assert!((worst.found - worst.expected - 64.0).abs() < 0.5);
    assert_eq!((measures.mismatches, measures.unequal), (1, 2));
    assert_eq!(
        measures
            .parts
            .iter()
            .map(|part| part.mismatches)
            .collect::<Vec<_>>(),
        [0, 0, 1]
    );
    assert!(
        measures.to_string().contains("worst at part 2, row 3, column 5"),
        "{measures}"
    );
}

#[test]
fn what_is_drawn_toward_zero_shows_in_the_outward_error_alone() {
    let problem = problem();
    let inputs = Inputs::generate(&problem, InputKind::Wide, 11);
    let expected = Oracle::compute(&problem, &inputs, Coverage::Full).unwrap();
    let mut output = Output::poisoned(&problem);
    let values: Vec<f64> = expected.values().map(|(_, value)| value).collect();
    let rms = (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
    let inward = |value: f64| value - 0.1 * rms * value.signum();
    expected
        .values()
        .for_each(|(index, value)| output.set(index, inward(value)));
    let drawn = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!((drawn.mean_outward + 0.1).abs() < 1e-3, "{drawn}");
    assert!(drawn.mean_signed.abs() < 0.03, "{drawn}");
}

#[test]
fn a_bias_shows_in_the_mean_signed_error() {
    let (expected, mut output) = right(Coverage::Full);
    let values: Vec<f64> = expected.values().map(|(_, value)| value).collect();
    let rms = (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
    expected
        .values()
        .for_each(|(index, value)| output.set(index, value + 0.25 * rms));
    let biased = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!((biased.mean_signed - 0.25).abs() < 1e-3, "{biased}");
    assert!((biased.nrmse - 0.25).abs() < 1e-3, "{biased}");

    let sign = |index: usize| if index.is_multiple_of(2) { 0.25 } else { -0.25 };
    expected
        .values()
        .for_each(|(index, value)| output.set(index, value + sign(index) * rms));
    let unbiased = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!(unbiased.mean_signed.abs() < 1e-3, "{unbiased}");
    assert!((unbiased.nrmse - 0.25).abs() < 1e-3, "{unbiased}");
}

#[test]
fn infinity_is_right_only_where_the_format_overflows() {
    let (mut expected, mut output) = right(Coverage::Full);
    expected.parts[0].grids[0].values[0] = 1e6;
    output.set(0, f64::INFINITY);
    let overflow = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((overflow.mismatches, overflow.unequal), (0, 0));
    assert!(overflow.nrmse.is_finite());

    for wrong in [f64::NEG_INFINITY, 65504.0] {
        output.set(0, wrong);
        let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
        assert_eq!((measures.mismatches, measures.unequal), (1, 1), "{wrong}");
    }
    output.set(0, f64::INFINITY);
    output.set(1, f64::INFINITY);
    let infinite = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((infinite.mismatches, infinite.unwritten), (1, 0));
    assert_eq!(infinite.nrmse, f64::INFINITY);
}

#[test]
fn zeros_of_either_sign_are_equal() {
    let (mut expected, mut output) = right(Coverage::Full);
    expected.parts[0].grids[0].values[0] = 0.0;
    output.set(0, -0.0);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!(measures.unequal, 0);
}

#[test]
fn measures_of_a_broken_result_survive_json() {
    let (expected, mut output) = right(Coverage::Full);
    output.set(0, f64::INFINITY);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!(measures.nrmse, f64::INFINITY);
    let json = serde_json::to_string(&measures).unwrap();
    assert_eq!(serde_json::from_str::<ErrorMeasures>(&json).unwrap(), measures);
}
