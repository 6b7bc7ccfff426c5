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
