//! NaN and infinity in expected results, and tolerances of single outputs.

use gauntlet_task::{ErrorMeasures, Expected, Limits, Output, Rightness, Rules, Tolerance};
use gauntlet_tensors::{DataType, TensorSpec};

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
fn each_output_is_judged_by_its_own_limits() {
    let specs = [DataType::F32, DataType::I32].map(|data_type| TensorSpec::new("y", data_type, [2]));
    let mut output = Output::poisoned(&specs);
    for (part, value) in [(0, 101.0), (1, 100.0)] {
        output.0[part].set(0, value);
        output.0[part].set(1, value);
    }
    let rules = Rules::default();
    let exact = Limits {
        tolerance: Tolerance {
            relative: 0.0,
            absolute: 0.0,
        },
        ..rules.limits()
    };
    let wide = Limits {
        tolerance: Tolerance {
            relative: 0.0,
            absolute: 2.0,
        },
        nrmse: 0.1,
        bias: 0.1,
        allowed_share: 0.0,
    };
    let said = |limits: [Limits; 2]| {
        let expected = Expected::whole(specs.iter().map(|spec| (spec, vec![100.0; 2]))).within(limits);
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        rules.fault(&errors, Rightness::default())
    };
    assert_eq!(said([wide, exact]), None);
    let told = said([exact, wide]).unwrap();
    assert!(
        told.starts_with("`y`: NRMSE 1.00e-2 is over 5.00e-4; NRMSE 1.00e-2"),
        "{told}"
    );
    let with_share = Limits {
        allowed_share: 1.0,
        ..exact
    };
    let unlimited = Limits {
        nrmse: f64::INFINITY,
        bias: f64::INFINITY,
        ..with_share
    };
    assert_eq!(said([unlimited, exact]), None);
    assert!(
        said([exact, unlimited]).is_some(),
        "the share of one output covers no other"
    );
}

/// An output of small values beside one of large values: an error as large as the small output vanishes in all together.
#[test]
fn a_small_output_is_not_hidden_by_a_large_one() {
    let names = ["large", "small"];
    let specs = names.map(|name| TensorSpec::new(name, DataType::F32, [100]));
    let values = [10.0, 0.002].map(|size| {
        (0..100)
            .map(|index| size * (1.0 + f64::from(index) / 100.0))
            .collect()
    });
    let expected = Expected::whole(specs.iter().zip(values));
    let mut output = Output::poisoned(&specs);
    for (part, index, value) in expected.values() {
        let sign = if part == 1 && index % 2 == 0 { -1.0 } else { 1.0 };
        output.0[part].set(index, sign * value);
    }
    let limits = Limits {
        tolerance: Tolerance {
            relative: 1e-2,
            absolute: 1e-2,
        },
        nrmse: 1e-2,
        bias: 1.0,
        allowed_share: 0.0,
    };
    let rules = Rules {
        tolerance: limits.tolerance,
        nrmse: limits.nrmse,
        bias: limits.bias,
        ..Rules::default()
    };
    let said = |expected: &Expected| {
        let errors = ErrorMeasures::between(&output, expected, rules.tolerance);
        assert!(errors.nrmse < 1e-3, "{errors}");
        rules.fault(&errors, Rightness::default()).unwrap()
    };
    let told = said(&expected.clone().within([limits; 2]));
    assert!(told.starts_with("`small`: NRMSE 1.4"), "{told}");
    // So it is with the parts of a built-in task, which have no limits of their own.
    let told = said(&expected);
    assert!(told.starts_with("`small`: NRMSE 1.4"), "{told}");
}
