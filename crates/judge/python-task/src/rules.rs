//! The rules for results of a Python task: for each output the limits that the task states, or the defaults of its type.

use gauntlet_task::{InputKind, Limits, Rules, Tolerance};
use gauntlet_tensors::{DataType, TensorSpec};

use crate::protocol::{CaseTensors, StatedLimits, StatedTolerance};

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

/// The limits of each output. A table for all outputs is one for floats: integers must be equal unless a table names them, or all
/// outputs are integers.
///
/// A normalised error and a bias are limited too, because a tolerance alone passes all zeros where results are small, and
/// results that are all off in one direction. An output for which a task states a relative error may have as large a normalised
/// one, and a quarter of it as a bias; its `tolerance` may state `nrmse` and `bias` where neither fits.
pub(crate) fn limits(tensors: &CaseTensors) -> Vec<Limits> {
    let is_float = |spec: &TensorSpec| spec.data_type.has_nan();
    let no_floats = !tensors.outputs.iter().any(is_float);
    let of_output = |spec: &TensorSpec| {
        let stated = match &tensors.tolerance {
            Some(StatedTolerance::All(table)) if no_floats || is_float(spec) => Some(table),
            Some(StatedTolerance::Outputs(named)) => named.get(&spec.name),
            _ => None,
        };
        own_limits(spec, stated)
    };
    tensors.outputs.iter().map(of_output).collect()
}

fn own_limits(spec: &TensorSpec, stated: Option<&StatedLimits>) -> Limits {
    let default = of_type(spec.data_type);
    // Without a statement the error of a type is mostly that of its rounding, for which the general rules are made.
    let suited = Rules::default().suited_to(std::slice::from_ref(spec));
    let Some(stated) = stated else {
        return Limits {
            tolerance: default,
            ..suited.limits()
        };
    };
    let tolerance = Tolerance {
        relative: stated.rtol.unwrap_or(default.relative),
        absolute: stated.atol.unwrap_or(default.absolute),
    };
    let allowed_share = stated.share.unwrap_or(0.0).min(1.0);
    // An integer that differs is off by one or more, so the other limits would take back the share.
    let by_share = !spec.data_type.has_nan() && allowed_share > 0.0;
    let or_none = |limit: f64| if by_share { f64::INFINITY } else { limit };
    Limits {
        tolerance,
        nrmse: stated
            .nrmse
            .unwrap_or_else(|| or_none(suited.nrmse.max(tolerance.relative))),
        bias: stated
            .bias
            .unwrap_or_else(|| or_none(suited.bias.max(tolerance.relative / 4.0))),
        allowed_share,
    }
}

/// The limits of an output that is expected to be zero everywhere: there is no root mean square to which an error could be
/// related, so the tolerance alone decides.
pub(crate) fn by_tolerance(limits: Limits) -> Limits {
    Limits {
        nrmse: f64::INFINITY,
        bias: f64::INFINITY,
        ..limits
    }
}

/// The rules for a case, given the general ones: its outputs have limits of their own, unless only the task's check decides.
pub(crate) fn rules(general: &Rules, check_is_the_rule: bool) -> Rules {
    let inputs = general
        .inputs
        .iter()
        .take(1)
        .map(|_| InputKind::default())
        .collect();
    if !check_is_the_rule {
        return Rules {
            inputs,
            ..general.clone()
        };
    }
    Rules {
        inputs,
        tolerance: Tolerance {
            relative: f64::MAX,
            absolute: f64::MAX,
        },
        nrmse: f64::INFINITY,
        bias: f64::INFINITY,
        allowed_share: 1.0,
    }
}

/// Whether an output of 64-bit integers, which f64 cannot tell apart beyond 2⁵³, has to be equal.
pub(crate) fn is_exact(spec: &TensorSpec, limits: &Limits) -> bool {
    let is_long = matches!(spec.data_type, DataType::I64 | DataType::U64);
    let Tolerance { relative, absolute } = limits.tolerance;
    is_long && relative == 0.0 && absolute == 0.0 && limits.allowed_share == 0.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    fn tensors(types: &[DataType], tolerance: Option<StatedTolerance>) -> CaseTensors {
        let spec =
            |(number, data_type): (usize, &DataType)| TensorSpec::new(format!("y{number}"), *data_type, [4]);
        CaseTensors {
            outputs: types.iter().enumerate().map(spec).collect(),
            tolerance,
            ..CaseTensors::default()
        }
    }

    fn wide() -> StatedLimits {
        StatedLimits {
            rtol: Some(0.1),
            ..StatedLimits::default()
        }
    }

    fn relative(types: &[DataType], tolerance: Option<StatedTolerance>) -> Vec<f64> {
        let own = limits(&tensors(types, tolerance)).into_iter();
        own.map(|limits| limits.tolerance.relative).collect()
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
        let of = |tolerance| limits(&tensors(&[DataType::F32], tolerance))[0];
        let default = of(None);
        assert_eq!((default.nrmse, default.bias), (5e-4, 1e-4));
        let stated = of(Some(StatedTolerance::All(wide())));
        assert_eq!((stated.nrmse, stated.bias), (0.1, 0.025));
        assert_eq!(stated.tolerance.absolute, 1e-5, "the default of the type");
        let all = StatedLimits {
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
    fn what_is_stated_for_one_output_holds_for_no_other() {
        let stated = StatedLimits {
            nrmse: Some(0.5),
            bias: Some(0.4),
            share: Some(0.01),
            ..wide()
        };
        let named = StatedTolerance::Outputs(BTreeMap::from([("y0".to_owned(), stated)]));
        let own = limits(&tensors(
            &[DataType::F32, DataType::F32, DataType::Bf16],
            Some(named),
        ));
        assert_eq!(
            (own[0].nrmse, own[0].bias, own[0].allowed_share),
            (0.5, 0.4, 0.01)
        );
        assert_eq!(
            (own[1].nrmse, own[1].bias, own[1].allowed_share),
            (5e-4, 1e-4, 0.0)
        );
        assert_eq!(
            (own[2].nrmse, own[2].bias),
            (8.0 * 5e-4, 8.0 * 1e-4),
            "its own type"
        );
    }

    #[test]
    fn a_share_of_integers_is_not_taken_back_by_the_other_limits() {
        let share = StatedLimits {
            share: Some(0.01),
            ..StatedLimits::default()
        };
        let own = limits(&tensors(&[DataType::I8], Some(StatedTolerance::All(share))))[0];
        assert_eq!((own.tolerance.absolute, own.allowed_share), (0.0, 0.01));
        assert!(own.nrmse.is_infinite() && own.bias.is_infinite());
    }

    #[test]
    fn a_limit_that_is_null_is_none() {
        let limits: StatedLimits = serde_json::from_str(r#"{"rtol": null, "nrmse": 0.05}"#).unwrap();
        assert_eq!(
            (limits.rtol, limits.atol, limits.nrmse),
            (Some(f64::MAX), None, Some(0.05))
        );
    }
}
