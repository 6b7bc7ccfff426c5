//! Limits that grow with the rounding step of the output's type.

use gauntlet_task::{ErrorMeasures, Expected, Output, Rightness, Rules, Tolerance};
use gauntlet_tensors::{DataType, TensorSpec};

fn outputs(types: &[DataType]) -> Vec<TensorSpec> {
    let spec = |data_type: &DataType| TensorSpec::new("y", *data_type, [64, 64]);
    types.iter().map(spec).collect()
}

#[test]
fn limits_grow_with_the_rounding_step_of_the_coarsest_float() {
    let rules = Rules::default();
    for types in [
        &[][..],
        &[DataType::F64],
        &[DataType::F32, DataType::F16],
        &[DataType::I8, DataType::Bool],
    ] {
        assert_eq!(rules.suited_to(&outputs(types)), rules, "{types:?}");
    }
    for (types, factor) in [
        (&[DataType::F32, DataType::Bf16][..], 8.0),
        (&[DataType::F8e4m3, DataType::I32], 128.0),
        (&[DataType::F8e5m2, DataType::F8e4m3], 256.0),
    ] {
        let suited = rules.suited_to(&outputs(types));
        let tolerance = Tolerance {
            relative: factor * 1e-3,
            absolute: 1e-3,
        };
        assert_eq!(suited.tolerance, tolerance, "{types:?}");
        assert_eq!(
            (suited.nrmse, suited.bias),
            (factor * 5e-4, factor * 1e-4),
            "{types:?}"
        );
    }
}

/// The rules' verdict on results with the relative error `error`, then rounded to the type.
fn fault(data_type: DataType, error: f64) -> Option<String> {
    let specs = outputs(&[data_type]);
    let values: Vec<f64> = (0..64 * 64)
        .map(|index| (f64::from(index) * 0.37).sin() * 3.0)
        .collect();
    let mut output = Output::poisoned(&specs);
    for (index, value) in values.iter().enumerate() {
        output.0[0].set(index, value * (1.0 + error));
    }
    let expected = Expected::whole([(&specs[0], values)]);
    let rules = Rules::default().suited_to(&specs);
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    rules.fault(&errors, Rightness::default())
}

#[test]
fn errors_far_below_a_rounding_step_are_right_and_of_two_steps_are_wrong() {
    for (data_type, roundoff) in [
        (DataType::F16, 2.0_f64.powi(-11)),
        (DataType::Bf16, 2.0_f64.powi(-8)),
        (DataType::F8e4m3, 2.0_f64.powi(-4)),
        (DataType::F8e5m2, 2.0_f64.powi(-3)),
    ] {
        assert_eq!(fault(data_type, 0.05 * roundoff), None, "{data_type}");
        assert!(fault(data_type, 2.0 * roundoff).is_some(), "{data_type}");
    }
}
