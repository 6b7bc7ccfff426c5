//! NaN and infinity in expected results, and tolerances of single outputs.

use gauntlet_formats::{DataType, TensorSpec};
use gauntlet_task::{ErrorMeasures, Expected, Output, Rightness, Rules, Tolerance};

/// The rules' message for results where others are expected.
fn fault(expected: &[f64], found: &[f64]) -> Option<String> {
    let spec = TensorSpec::new("y", DataType::F32, [expected.len()]);
    let mut output = Output::poisoned(std::slice::from_ref(&spec));
    for (index, value) in found.iter().enumerate() {
        output.0[0].set(index, *value);
    }
    let rules = Rules::default();
    let expected = Expected::whole([(&spec, expected.to_vec())]);
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    rules.fault(&errors, Rightness::default())
}

#[test]
fn nan_and_infinity_are_right_where_they_are_expected_and_only_there() {
    let expected = [1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(fault(&expected, &expected), None);
    for (index, value) in [
        (0, f64::NAN),
        (0, f64::INFINITY),
        (1, 1.0),
        (1, f64::INFINITY),
        (2, 1.0),
        (2, f64::NAN),
        (2, f64::NEG_INFINITY),
        (3, f64::from(f32::MIN)),
    ] {
        let mut found = expected;
        found[index] = value;
        assert!(fault(&expected, &found).is_some(), "{value} at {index}");
    }
}

#[test]
fn no_allowed_share_hides_a_number_in_place_of_infinity() {
    let spec = TensorSpec::new("y", DataType::F32, [4]);
    let mut output = Output::poisoned(std::slice::from_ref(&spec));
    for index in 0..4 {
        output.0[0].set(index, 1.0);
    }
    let rules = Rules {
        allowed_share: 1.0,
        ..Rules::default()
    };
    let expected = Expected::whole([(&spec, vec![1.0, 1.0, 1.0, f64::INFINITY])]);
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    assert_eq!(errors.nrmse, f64::INFINITY);
    assert!(rules.fault(&errors, Rightness::default()).is_some());
}

#[test]
fn each_output_may_have_its_own_tolerance() {
    let specs = [DataType::F32, DataType::I32].map(|data_type| TensorSpec::new("y", data_type, [2]));
    let mut output = Output::poisoned(&specs);
    for (part, value) in [(0, 101.0), (1, 100.0)] {
        output.0[part].set(0, value);
        output.0[part].set(1, value);
    }
    let exact = Tolerance {
        relative: 0.0,
        absolute: 0.0,
    };
    let wide = Tolerance {
        relative: 0.0,
        absolute: 2.0,
    };
    let mismatches = |tolerances: [Tolerance; 2]| {
        let expected = Expected::whole(specs.iter().map(|spec| (spec, vec![100.0; 2]))).within(tolerances);
        ErrorMeasures::between(&output, &expected, exact).mismatches
    };
    assert_eq!(mismatches([wide, exact]), 0);
    assert_eq!(mismatches([exact, wide]), 2);
}
