//! The rules by which tests of GPU kernels judge results of any schedule.

use gauntlet_problems::resources::HopperAttention;
use gauntlet_problems::{Arithmetic, AttentionFormat, Operation, OutputFormat, Schedule};
use gauntlet_task::{Rules, Tolerance};

/// The general rules, which are made for f16. bf16 has three bits fewer, and e4m3, to which fp8 arithmetic rounds
/// weights, seven; where fp8 arithmetic only multiplies queries by keys, scores are sums of about 14 bits. Attention's
/// weights are rounded too, and an element's error depends on the magnitude of V, not on that of the element: the root
/// mean square of all errors must keep the same rule, single elements a wider one.
pub fn rules(problem: &Operation, schedule: &Schedule) -> Rules {
    let rules = Rules::default();
    let attention = match problem {
        Operation::GroupedGemm(_) => None,
        Operation::Attention(attention) => Some(attention.format),
    };
    let coarser = match (schedule.arithmetic, attention, problem.output_format()) {
        (Arithmetic::Fp8, Some(AttentionFormat::E4m3), _) => match HopperAttention::of(schedule) {
            HopperAttention::Specialised | HopperAttention::Unified => 32.0,
            HopperAttention::Resident => 128.0,
        },
        (_, Some(AttentionFormat::Bf16), _) | (_, _, OutputFormat::Bf16) => 8.0,
        _ => 1.0,
    };
    let single = if attention.is_some() {
        8.0 * coarser
    } else {
        coarser
    };
    Rules {
        tolerance: Tolerance {
            relative: single * rules.tolerance.relative,
            absolute: if attention.is_some() {
                single * rules.tolerance.absolute
            } else {
                rules.tolerance.absolute
            },
        },
        nrmse: coarser * rules.nrmse,
        // Equal weights, as in a long tail, are all rounded in the same direction: by up to half a step of their
        // format.
        bias: match coarser {
            128.0 => 1.0 / 32.0,
            8.0 | 32.0 if attention.is_some() => 1.0 / 512.0,
            _ => rules.bias,
        },
        ..rules
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::{Form, GemmShape, GroupedGemm};
    use gauntlet_task::{Coverage, ErrorMeasures, InputKind, Output};

    use super::*;
    use crate::operations;

    /// The verdict of the rules on the oracle's result, rounded to the format and with one element changed by a factor.
    fn said(format: OutputFormat, factor: f64) -> Option<String> {
        let problem = Operation::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: 33, n: 65, k: 64 }],
            form: Form::Plain,
            output: format,
            tokens: Default::default(),
        });
        let inputs = operations::generate(&problem, InputKind::Wide, 1);
        let expected = operations::expected(&problem, &inputs, Coverage::Full).unwrap();
        let mut output = Output::poisoned(&problem.outputs());
        let largest = expected
            .values()
            .max_by(|one, other| one.2.abs().total_cmp(&other.2.abs()))
            .unwrap();
        for (tensor, index, value) in expected.values() {
            let factor = if index == largest.1 { factor } else { 1.0 };
            output.0[tensor].set(index, value * factor);
        }
        let rules = rules(&problem, &Schedule::baseline());
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        let sizes = operations::sizes(&problem).unwrap();
        rules.fault(&errors, sizes.rightness(Some(InputKind::Wide)))
    }

    #[test]
    fn a_last_bit_is_forgiven_in_every_format_and_four_are_not() {
        for (format, bit) in [
            (OutputFormat::F16, 2f64.powi(-10)),
            (OutputFormat::Bf16, 2f64.powi(-7)),
            (OutputFormat::F32, 2f64.powi(-23)),
        ] {
            assert_eq!(said(format, 1.0), None);
            assert_eq!(said(format, 1.0 + 0.6 * bit), None, "{format}");
        }
        assert!(said(OutputFormat::F16, 1.0 + 4.0 / 1024.0).is_some());
        assert!(said(OutputFormat::Bf16, 1.0 + 4.0 / 128.0).is_some());
        assert!(said(OutputFormat::F32, 1.0 + 4.0 / 1024.0).is_some());
    }
}
