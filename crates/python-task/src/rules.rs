//! The rules for results of a Python task: the tolerance that the task states, or the default of each output's type.

use gauntlet_formats::{DataType, TensorSpec};
use gauntlet_task::{InputKind, Rules, Tolerance};

use crate::protocol::{CaseTensors, Limits, StatedTolerance};

/// How far an element of a type may be off by default: the table of `torch.testing.assert_close`
/// (<https://docs.pytorch.org/docs/stable/testing.html>): integers and booleans must be equal. That table has no 8-bit
/// floats; here they may be off by one step, 2⁻³ of the value with three fraction bits and 2⁻² with two, or by the smallest
/// subnormal.
fn of_type(data_type: DataType) -> Tolerance {
    let (relative, absolute) = match data_type {
        DataType::F64 => (1e-7, 1e-7),
        DataType::F32 => (1.3e-6, 1e-5),
        DataType::F16 => (1e-3, 1e-5),
        DataType::Bf16 => (1.6e-2, 1e-5),
        DataType::F8e4m3 => (0.125, 2.0_f64.powi(-9)),
        DataType::F8e5m2 => (0.25, 2.0_f64.powi(-16)),
        DataType::I64 | DataType::I32 | DataType::I16 | DataType::I8 => (0.0, 0.0),
        DataType::U64 | DataType::U32 | DataType::U16 | DataType::U8 | DataType::Bool => (0.0, 0.0),
    };
    Tolerance { relative, absolute }
}

/// The tolerance of each output. A table for all outputs is one for floats: integers must be equal unless a table names
/// them, or all outputs are integers.
pub(crate) fn tolerances(tensors: &CaseTensors) -> Vec<Tolerance> {
    let is_float = |spec: &TensorSpec| spec.data_type.has_nan();
    let no_floats = !tensors.outputs.iter().any(is_float);
    let of_output = |spec: &TensorSpec| {
        let default = of_type(spec.data_type);
        match &tensors.tolerance {
            Some(StatedTolerance::All(limits)) if no_floats || is_float(spec) => stated(limits, default),
            Some(StatedTolerance::Outputs(named)) => named
                .get(&spec.name)
                .map_or(default, |limits| stated(limits, default)),
            _ => default,
        }
    };
    tensors.outputs.iter().map(of_output).collect()
}

fn stated(limits: &Limits, default: Tolerance) -> Tolerance {
    Tolerance {
        relative: limits.rtol.unwrap_or(default.relative),
        absolute: limits.atol.unwrap_or(default.absolute),
    }
}

/// The rules for a case, given the general ones.
///
/// A normalised error and a bias are limited too, because a tolerance alone passes all zeros where results are small, and
/// results that are all off in one direction. A task that allows a relative error allows as large a normalised one, and a
/// quarter of it as a bias; its `tolerance` may state `nrmse` and `bias` where neither fits.
pub(crate) fn rules(tensors: &CaseTensors, general: &Rules, check_is_the_rule: bool) -> Rules {
    let kinds = general.inputs.iter().take(1).map(|_| InputKind::default());
    let suited = general.suited_to(&tensors.outputs);
    if check_is_the_rule {
        return Rules {
            inputs: kinds.collect(),
            tolerance: Tolerance {
                relative: f64::MAX,
                absolute: f64::MAX,
            },
            nrmse: f64::INFINITY,
            bias: f64::INFINITY,
            allowed_share: 1.0,
        };
    }
    let own = tolerances(tensors);
    let widest = |of: fn(&Tolerance) -> f64| own.iter().map(of).fold(0.0, f64::max);
    let (relative, absolute) = (widest(|own| own.relative), widest(|own| own.absolute));
    let limits: Vec<&Limits> = match &tensors.tolerance {
        Some(StatedTolerance::All(limits)) => vec![limits],
        Some(StatedTolerance::Outputs(named)) => named.values().collect(),
        None => Vec::new(),
    };
    let of_limits =
        |of: fn(&Limits) -> Option<f64>| limits.iter().filter_map(|limits| of(limits)).reduce(f64::max);
    // Without a statement the error of a type is mostly that of its rounding, for which the general rules are made.
    let allowed = if tensors.tolerance.is_some() {
        relative
    } else {
        0.0
    };
    Rules {
        inputs: kinds.collect(),
        tolerance: Tolerance { relative, absolute },
        nrmse: of_limits(|limits| limits.nrmse).unwrap_or_else(|| suited.nrmse.max(allowed)),
        bias: of_limits(|limits| limits.bias).unwrap_or_else(|| suited.bias.max(allowed / 4.0)),
        allowed_share: of_limits(|limits| limits.share).unwrap_or(0.0).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::Work;

    fn tensors(types: &[DataType], tolerance: Option<StatedTolerance>) -> CaseTensors {
        let spec =
            |(number, data_type): (usize, &DataType)| TensorSpec::new(format!("y{number}"), *data_type, [4]);
        CaseTensors {
            inputs: Vec::new(),
            outputs: types.iter().enumerate().map(spec).collect(),
            constant: Vec::new(),
            deterministic: true,
            sizes: serde_json::Value::Null,
            tolerance,
            work: Work::default(),
        }
    }

    fn wide() -> Limits {
        Limits {
            rtol: Some(0.1),
            ..Limits::default()
        }
    }

    fn relative(types: &[DataType], tolerance: Option<StatedTolerance>) -> Vec<f64> {
        let own = tolerances(&tensors(types, tolerance)).into_iter();
        own.map(|tolerance| tolerance.relative).collect()
    }

    #[test]
    fn a_table_for_all_outputs_is_one_for_floats() {
        use DataType::{F32, I32};
        let all = Some(StatedTolerance::All(wide()));
        assert_eq!(relative(&[F32, I32], None), [1.3e-6, 0.0]);
        assert_eq!(relative(&[F32, I32], all.clone()), [0.1, 0.0]);
        assert_eq!(relative(&[I32], all), [0.1]);
        let named = Some(StatedTolerance::Outputs(BTreeMap::from([(
            "y1".to_owned(),
            wide(),
        )])));
        assert_eq!(relative(&[F32, I32], named), [1.3e-6, 0.1]);
    }

    #[test]
    fn the_other_limits_follow_a_stated_tolerance_unless_they_are_stated() {
        let of = |tolerance| rules(&tensors(&[DataType::F32], tolerance), &Rules::default(), false);
        let default = of(None);
        assert_eq!(
            (default.nrmse, default.bias, default.inputs.len()),
            (5e-4, 1e-4, 1)
        );
        let stated = of(Some(StatedTolerance::All(wide())));
        assert_eq!((stated.nrmse, stated.bias), (0.1, 0.025));
        assert_eq!(stated.tolerance.absolute, 1e-5, "the default of the type");
        let all = Limits {
            nrmse: Some(0.5),
            bias: Some(0.4),
            share: Some(0.01),
            ..wide()
        };
        let stated = of(Some(StatedTolerance::All(all)));
        assert_eq!(
            (stated.nrmse, stated.bias, stated.allowed_share),
            (0.5, 0.4, 0.01)
        );
    }

    #[test]
    fn a_limit_that_is_null_is_none() {
        let limits: Limits = serde_json::from_str(r#"{"rtol": null, "nrmse": 0.05}"#).unwrap();
        assert_eq!(
            (limits.rtol, limits.atol, limits.nrmse),
            (Some(f64::MAX), None, Some(0.05))
        );
    }
}
