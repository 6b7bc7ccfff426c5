//! Error measures on outputs that are wrong in known ways.

use std::collections::BTreeSet;

use gauntlet_task::{
    Coverage, ErrorMeasures, Expected, Grid, InputKind, Output, Rightness, Rules, Tolerance, holds, normal,
    stream, unwritten_between,
};
use gauntlet_tensors::{DataType, Tensor, TensorSpec};

const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-3,
    absolute: 1e-3,
};

/// Two outputs with elements, and one without between them.
fn outputs() -> Vec<TensorSpec> {
    [[6, 40], [0, 8], [5, 8]]
        .into_iter()
        .enumerate()
        .map(|(number, shape)| TensorSpec::new(format!("{number}.c"), DataType::F16, shape))
        .collect()
}

/// Where the elements of the last output begin, counted over all outputs.
const LAST: usize = 240;

/// Random reference values for the outputs: for `Competition`, multiples of a quarter under 2048 in magnitude, which
/// f16 holds; for other kinds, values that f16 rounds.
fn drawn(kind: InputKind, coverage: Coverage) -> Expected {
    let part = |(number, spec): (usize, &TensorSpec)| {
        let values: Vec<f64> = normal(spec.elements(), &mut stream(11, number))
            .into_iter()
            .map(|value| match kind {
                InputKind::Competition => (f64::from(value) * 32.0).round() / 4.0,
                _ => f64::from(value) * 16.0,
            })
            .collect();
        let grid = |rows: Vec<usize>, columns: Vec<usize>| Grid {
            values: rows
                .iter()
                .flat_map(|row| columns.iter().map(|column| (*row, *column)))
                .map(|(row, column)| values[row * spec.columns() + column])
                .collect(),
            rows,
            columns,
        };
        let rows = coverage.rows(number, spec.rows());
        let others = (0..spec.rows()).filter(|row| !rows.contains(row)).collect();
        vec![
            grid(rows, (0..spec.columns()).collect()),
            grid(others, coverage.columns(number, spec.columns())),
        ]
    };
    let outputs = outputs();
    let grids = outputs.iter().enumerate().map(part).collect();
    Expected::new(coverage, &outputs, grids)
}

/// The elements of the reference after `change`, rounded to the output types.
fn rounded(expected: &Expected, change: impl Fn(usize, f64) -> f64) -> Output {
    let mut output = Output::poisoned(&outputs());
    for (part, index, value) in expected.values() {
        output.0[part].set(index, change(index, value));
    }
    output
}

/// The reference, and its rounding as an output.
fn right(coverage: Coverage) -> (Expected, Output) {
    let full = drawn(InputKind::Competition, Coverage::Full);
    let output = rounded(&full, |_, value| value);
    (drawn(InputKind::Competition, coverage), output)
}

fn root_mean_square(expected: &Expected) -> f64 {
    let squares: f64 = expected.values().map(|(_, _, value)| value * value).sum();
    (squares / expected.elements() as f64).sqrt()
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
    // Competition data are multiples of a quarter under 2048 in magnitude here: rounding to f16 costs almost nothing.
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
    let sampled: BTreeSet<(usize, usize)> = expected.values().map(|(part, index, _)| (part, index)).collect();
    let elsewhere = (0..LAST).find(|index| !sampled.contains(&(0, *index))).unwrap();
    output.0[0].set(elsewhere, f64::NAN);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((measures.unwritten, measures.mismatches), (1, 0));
    assert_eq!(measures.compared, 40 + 5 + 8 + 4);
    assert!(
        measures.to_string().contains("1 of 280 NaN or never written"),
        "{measures}"
    );

    let (part, index) = *sampled.first().unwrap();
    output.0[part].set(index, f64::NAN);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((measures.unwritten, measures.mismatches), (2, 1));
    assert_eq!(measures.nrmse, f64::INFINITY);
}

#[test]
fn the_worst_element_is_named_with_its_place() {
    let (expected, mut output) = right(Coverage::Full);
    for (part, index, error) in [(2, 3 * 8 + 5, 64.0), (0, 7, 1.0)] {
        let tensor = &mut output.0[part];
        tensor.set(index, tensor.get(index) + error);
    }
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
        measures.to_string().contains("worst at `2.c`, row 3, column 5"),
        "{measures}"
    );
}

#[test]
fn what_is_drawn_toward_zero_shows_in_the_outward_error_alone() {
    let expected = drawn(InputKind::Wide, Coverage::Full);
    let shift = 0.1 * root_mean_square(&expected);
    let output = rounded(&expected, |_, value| value - shift * value.signum());
    let drawn = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!((drawn.mean_outward + 0.1).abs() < 1e-3, "{drawn}");
    assert!(drawn.mean_signed.abs() < 0.03, "{drawn}");
}

#[test]
fn a_bias_shows_in_the_mean_signed_error() {
    let expected = drawn(InputKind::Competition, Coverage::Full);
    let shift = 0.25 * root_mean_square(&expected);
    let output = rounded(&expected, |_, value| value + shift);
    let biased = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!((biased.mean_signed - 0.25).abs() < 1e-3, "{biased}");
    assert!((biased.nrmse - 0.25).abs() < 1e-3, "{biased}");

    let sign = |index: usize| if index.is_multiple_of(2) { 1.0 } else { -1.0 };
    let output = rounded(&expected, |index, value| value + sign(index) * shift);
    let unbiased = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert!(unbiased.mean_signed.abs() < 1e-3, "{unbiased}");
    assert!((unbiased.nrmse - 0.25).abs() < 1e-3, "{unbiased}");
}

#[test]
fn infinity_is_right_only_where_the_format_overflows() {
    let (mut expected, mut output) = right(Coverage::Full);
    expected.parts[0].grids[0].values[0] = 1e6;
    output.0[0].set(0, f64::INFINITY);
    let overflow = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((overflow.mismatches, overflow.unequal), (0, 0));
    assert!(overflow.nrmse.is_finite());

    for wrong in [f64::NEG_INFINITY, 65504.0] {
        output.0[0].set(0, wrong);
        let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
        assert_eq!((measures.mismatches, measures.unequal), (1, 1), "{wrong}");
    }
    output.0[0].set(0, f64::INFINITY);
    output.0[0].set(1, f64::INFINITY);
    let infinite = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!((infinite.mismatches, infinite.unwritten), (1, 0));
    assert_eq!(infinite.nrmse, f64::INFINITY);
}

#[test]
fn zeros_of_either_sign_are_equal() {
    let (mut expected, mut output) = right(Coverage::Full);
    expected.parts[0].grids[0].values[0] = 0.0;
    output.0[0].set(0, -0.0);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!(measures.unequal, 0);
}

#[test]
fn measures_of_a_broken_result_survive_json() {
    let (expected, mut output) = right(Coverage::Full);
    output.0[0].set(0, f64::INFINITY);
    let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
    assert_eq!(measures.nrmse, f64::INFINITY);
    let json = serde_json::to_string(&measures).unwrap();
    assert_eq!(serde_json::from_str::<ErrorMeasures>(&json).unwrap(), measures);
}

#[test]
fn outputs_of_any_type_are_compared_as_their_type_rounds() {
    let types = DataType::ALL.into_iter().filter(|kind| *kind != DataType::Bool);
    for data_type in types {
        let spec = TensorSpec::new("c", data_type, [2, 3]);
        let values = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.2];
        let expected = Expected::whole([(&spec, values.clone())]);
        let mut output = Output::poisoned(std::slice::from_ref(&spec));
        values
            .iter()
            .enumerate()
            .for_each(|(index, value)| output.0[0].set(index, *value));
        let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
        assert_eq!(
            (measures.unwritten, measures.mismatches, measures.unequal),
            (0, 0, 0),
            "{data_type}: {measures}"
        );
        output.0[0].set(4, 7.0);
        let measures = ErrorMeasures::between(&output, &expected, TOLERANCE);
        assert_eq!(
            (measures.mismatches, measures.unequal),
            (1, 1),
            "{data_type}: {measures}"
        );
        let worst = measures.worst.unwrap();
        assert_eq!(
            (worst.row, worst.column, worst.expected),
            (1, 1, 4.0),
            "{data_type}"
        );
    }
}

#[test]
fn elements_never_written_are_found_between_two_poisons() {
    const POISONS: [u8; 2] = [0xAA, 0x55];
    for data_type in DataType::ALL {
        let spec = TensorSpec::new("c", data_type, [2, 2]);
        // Elements 1 and 3 are written; in each result, element 3 has the bytes of the other result's poison.
        let results = POISONS.map(|poison| {
            let mut tensor = Tensor::filled(spec.clone(), poison);
            let bytes = data_type.bytes();
            tensor.bytes[bytes..2 * bytes].fill(0x01);
            tensor.bytes[3 * bytes..].fill(POISONS[0]);
            Output(vec![tensor])
        });
        let [one, other] = &results;
        assert_eq!(
            unwritten_between(one, other, POISONS).as_deref(),
            Some("2 elements of `c` were never written, the first at row 0, column 0"),
            "{data_type}"
        );
        assert_eq!(
            unwritten_between(other, one, POISONS),
            None,
            "{data_type}: results in the other order"
        );
        assert!(holds(one, POISONS[0]) && holds(other, POISONS[1]) && !holds(one, POISONS[1]));
    }
}

#[test]
fn an_element_that_is_written_in_part_counts_as_written() {
    let spec = TensorSpec::new("c", DataType::I32, [1]);
    let part = |poison| {
        let mut tensor = Tensor::filled(spec.clone(), poison);
        tensor.bytes[0] = 1;
        Output(vec![tensor])
    };
    assert_eq!(unwritten_between(&part(0xAA), &part(0x55), [0xAA, 0x55]), None);
}

#[test]
fn nan_that_was_written_is_told_from_what_filled_the_output_with_its_place() {
    let (expected, mut output) = right(Coverage::Full);
    output.0[2].set(3 * 8 + 5, f64::NAN);
    let measures = |output: &Output| ErrorMeasures::between(output, &expected, TOLERANCE);
    let told = |output: &Output| Rules::default().fault(&measures(output), Rightness::default());
    let part = |output: &Output| {
        let part = &measures(output).parts[2];
        (part.unwritten, part.poisoned, part.first_unwritten)
    };
    assert_eq!(part(&output), (1, 0, Some([3, 5])));
    assert_eq!(
        told(&output).as_deref(),
        Some("1 element of `2.c` is NaN, the first at row 3, column 5")
    );
    output.0[2].bytes[2..4].fill(0xFF);
    assert_eq!(part(&output), (2, 1, Some([0, 1])));
    assert_eq!(
        told(&output).as_deref(),
        Some("2 elements of `2.c` are NaN or never written, the first at row 0, column 1")
    );
}

#[test]
fn a_large_result_is_compared_whole_though_in_pieces() {
    // A result of this size is compared in pieces of several rows.
    let spec = TensorSpec::new("c", DataType::F32, [1500, 1001]);
    let values: Vec<f64> = normal(spec.elements(), &mut stream(5, 0))
        .into_iter()
        .map(f64::from)
        .collect();
    let expected = Expected::whole([(&spec, values.clone())]);
    let mut output = Output(vec![Tensor::of(spec.clone(), values)]);
    let measures = |output: &Output| ErrorMeasures::between(output, &expected, TOLERANCE);
    let right = measures(&output);
    assert_eq!(
        (right.compared, right.unequal, right.unwritten),
        (1500 * 1001, 0, 0)
    );

    let last = spec.elements() - 1;
    for (index, by) in [(0, 1.0), (700 * 1001 + 3, 2.0), (last, 4.0)] {
        let value = output.0[0].get(index);
        output.0[0].set(index, value + by);
    }
    output.0[0].set(last - 1, f64::NAN);
    let wrong = measures(&output);
    assert_eq!((wrong.unequal, wrong.mismatches, wrong.unwritten), (4, 4, 1));
    let worst = wrong.worst.unwrap();
    assert_eq!((worst.row, worst.column), (1499, 999), "{worst}");
    assert!(wrong.nrmse.is_infinite());
}
