//! What is wrong with a result.

use gauntlet_problem::{Case, ErrorMeasures, Form, GroupedGemm, InputKind, Problem};

use crate::round::Correctness;

/// How many standard deviations a bias may lie from none by chance.
///
/// Rounding to nearest errs either way with even odds, so over n elements the mean strays by NRMSE/√n; five times that comes once
/// in a hundred thousand comparisons (Hoeffding's bound, 2·exp(−t²/2)), and on few elements is over the rules' limit.
const CHANCE_DEVIATIONS: f64 = 5.0;

/// The biases that are taken for no bias.
struct BiasLimit {
    /// What the rules allow.
    allowed: f64,
    /// How many are looked at, of which each may stray: as likely in all as one alone, by the same bound.
    tried: usize,
}

impl BiasLimit {
    /// What is said of a bias up or down, or away from zero, that is over it.
    fn exceeded(&self, [signed, outward]: [f64; 2], nrmse: f64, independent: usize) -> Option<String> {
        let deviations = (CHANCE_DEVIATIONS.powi(2) + 2.0 * (self.tried.max(1) as f64).ln()).sqrt();
        let by_chance = deviations * nrmse / (independent.max(1) as f64).sqrt();
        let limit = self.allowed.max(by_chance);
        if signed.abs() > limit {
            return Some(format!("bias {signed:+.2e} is over ±{limit:.2e}"));
        }
        let direction = if outward < 0.0 { "toward" } else { "away from" };
        (outward.abs() > limit).then(|| {
            format!(
                "bias {direction} zero, {:.2e}, is over {limit:.2e}",
                outward.abs()
            )
        })
    }
}

/// What is wrong with a result, worst first.
pub fn fault(case: &Case, kind: InputKind, errors: &ErrorMeasures, rules: &Correctness) -> Option<String> {
    let exact = kind == InputKind::Competition
        && case.data.is_none()
        && matches!(
            &case.problem,
            Problem::GroupedGemm(GroupedGemm {
                form: Form::Plain,
                ..
            })
        );
    if errors.unwritten > 0 {
        return Some(format!(
            "{} elements are NaN or were never written",
            errors.unwritten
        ));
    }
    if errors.unequal == 0 {
        // The oracle, rounded, in every element compared: where results are so small that the format has few bits for
        // them, that alone may be farther from the oracle than the limits below.
        return None;
    }
    if exact {
        return Some(format!(
            "{} elements differ from the oracle, though every order of summation is exact on these values; {}",
            errors.unequal, errors
        ));
    }
    if errors.nrmse > rules.nrmse {
        return Some(format!(
            "NRMSE {:.2e} is over {:.2e}; {errors}",
            errors.nrmse, rules.nrmse
        ));
    }
    let limit = BiasLimit {
        allowed: rules.bias,
        tried: 1,
    };
    let whole = [errors.mean_signed, errors.mean_outward];
    if let Some(bias) = limit.exceeded(whole, errors.nrmse, errors.compared) {
        return Some(format!("{bias}; {errors}"));
    }
    // Each part too: what one head of eight has is an eighth of it in the whole.
    let parts = errors.parts.len();
    let limit = BiasLimit {
        allowed: match &case.problem {
            Problem::GroupedGemm(_) => rules.bias,
            // What exponentials are approximated by errs with a head's scores, up in one and down in another: parts that have √parts
            // of what is allowed come to what is allowed in the whole.
            Problem::Attention(_) => rules.bias * (parts as f64).sqrt(),
        },
        tried: parts,
    };
    for (index, part) in errors
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.unequal > 0)
    {
        let own = [part.mean_signed, part.mean_outward];
        let independent = match &case.problem {
            Problem::GroupedGemm(_) => part.compared,
            // A row's elements share its weights, and what is wrong with them.
            Problem::Attention(attention) => part.compared / attention.head_size,
        };
        if let Some(bias) = limit.exceeded(own, part.nrmse, independent) {
            return Some(format!("part {index}: {bias}; {errors}"));
        }
    }
    if errors.mismatches > 0 {
        return Some(format!(
            "{} elements are outside the tolerance; {errors}",
            errors.mismatches
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use gauntlet_formats::int8;
    use gauntlet_problem::{
        Attention, AttentionFormat, AttentionInputs, Coverage, Expected, GemmShape, HeadTensor, Inputs,
        Oracle, Output, OutputFormat, Scaling, Sequence, Tolerance,
    };

    use super::*;

    fn case(form: Form) -> Case {
        let groups = vec![GemmShape { m: 96, n: 128, k: 64 }];
        let output = OutputFormat::F32;
        Case {
            name: "test".to_owned(),
            problem: Problem::GroupedGemm(GroupedGemm { groups, form, output }),
            inputs: InputKind::Wide,
            data: None,
            speed_of_light: None,
        }
    }

    /// What the gate says of the oracle's own result after `tamper` has changed each element by its index.
    fn said(kind: InputKind, tamper: impl Fn(usize, f64) -> f64) -> Option<String> {
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, kind, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let mut output = Output::poisoned(&case.problem);
        for (index, value) in expected.values() {
            output.set(index, tamper(index, value));
        }
        let rules = Correctness::default();
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        fault(&case, kind, &errors, &rules)
    }

    /// Of the oracle's result on the operands of [`said`].
    fn root_mean_square() -> f64 {
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let squares: f64 = expected.values().map(|(_, value)| value * value).sum();
        (squares / expected.values().count() as f64).sqrt()
    }

    #[test]
    fn the_right_result_passes() {
        for kind in InputKind::ALL {
            assert_eq!(said(kind, |_, value| value), None);
        }
    }

    #[test]
    fn the_nearest_that_the_format_holds_is_right_however_far_that_is() {
        let mut case = case(Form::Plain);
        let groups = vec![GemmShape { m: 1, n: 3, k: 16 }];
        case.problem = Problem::GroupedGemm(GroupedGemm {
            groups,
            form: Form::Plain,
            output: OutputFormat::F16,
        });
        let mut output = Output::poisoned(&case.problem);
        // Subnormal in f16, whose step is 2⁻²⁴ there.
        (0..3).for_each(|index| output.set(index, 1e-6));
        let mut expected = Expected::of(&output);
        expected.parts[0].grids[0].values = vec![1e-6; 3];
        let rules = Correctness::default();
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        assert!(errors.nrmse > rules.nrmse, "{errors}");
        assert_eq!(fault(&case, InputKind::Wide, &errors, &rules), None);
    }

    #[test]
    fn an_element_never_written_is_told() {
        let fault = said(
            InputKind::Wide,
            |index, value| if index == 5 { f64::NAN } else { value },
        );
        assert!(
            fault
                .unwrap()
                .starts_with("1 elements are NaN or were never written")
        );
    }

    #[test]
    fn the_last_bit_counts_where_every_order_of_summation_is_exact() {
        let fault = said(InputKind::Competition, |index, value| {
            if index == 5 { value + 0.25 } else { value }
        });
        assert!(fault.unwrap().starts_with("1 elements differ from the oracle"));
    }

    #[test]
    fn errors_of_either_sign_everywhere_are_told_by_their_mean_square() {
        let fault = said(InputKind::Wide, |index, value| {
            value * if index % 2 == 0 { 1.0009 } else { 0.9991 }
        });
        assert!(fault.unwrap().starts_with("NRMSE"));
    }

    #[test]
    fn a_bias_within_every_tolerance_is_told() {
        // 3e-4 of the root mean square, always upward: under the limits on NRMSE, as a biased quantiser would be.
        let shift = 3e-4 * root_mean_square();
        assert!(
            said(InputKind::Wide, |_, value| value + shift)
                .unwrap()
                .starts_with("bias +3.00e-4")
        );
        // The same size of error with even odds of either sign is no bias.
        let even = |index: usize, value: f64| {
            if index.is_multiple_of(2) {
                value + shift
            } else {
                value - shift
            }
        };
        assert!(!said(InputKind::Wide, even).is_some_and(|fault| fault.starts_with("bias")));
    }

    #[test]
    fn results_drawn_toward_zero_are_told_though_their_signs_cancel() {
        let shift = 3e-4 * root_mean_square();
        let fault = said(InputKind::Wide, |_, value| value - shift * value.signum());
        assert!(
            fault.as_ref().unwrap().starts_with("bias toward zero"),
            "{fault:?}"
        );
    }

    /// 3e-4 of the root mean square in one group of eight is a third of what the whole may have.
    #[test]
    fn a_bias_of_one_group_is_told_though_it_is_lost_in_the_whole() {
        let size = 96 * 128;
        let mut case = case(Form::Plain);
        case.problem = Problem::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: 96, n: 128, k: 64 }; 8],
            form: Form::Plain,
            output: OutputFormat::F32,
        });
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let squares: f64 = expected.values().map(|(_, value)| value * value).sum();
        let shift = 3e-4 * (squares / (8 * size) as f64).sqrt();
        let rules = Correctness::default();
        let said = |biased: usize| {
            let mut output = Output::poisoned(&case.problem);
            for (index, value) in expected.values() {
                let off = if index / size == biased { shift } else { 0.0 };
                output.set(index, value - off * value.signum());
            }
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            assert!(errors.mean_outward.abs() < rules.bias, "{errors}");
            fault(&case, InputKind::Wide, &errors, &rules)
        };
        assert_eq!(said(8), None);
        let told = said(5).unwrap();
        assert!(told.starts_with("part 5: bias toward zero"), "{told}");
    }

    /// One head of eight off by 4e-4 is told; heads off by 2e-4, half of them up and half down, are as approximations leave them.
    #[test]
    fn a_head_may_be_off_by_more_than_all_heads() {
        let heads = 8;
        let mut case = case(Form::Plain);
        case.problem = Problem::Attention(Attention {
            sequences: vec![Sequence {
                queries: 64,
                keys: 64,
            }],
            heads,
            kv_heads: heads,
            head_size: 64,
            causal: false,
            format: AttentionFormat::F16,
            scaling: Scaling::PerHead,
            output: OutputFormat::F32,
        });
        let inputs = Inputs::generate(&case.problem, InputKind::Competition, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let values: Vec<_> = expected.values().collect();
        let rules = Correctness::default();
        let said = |off: fn(usize) -> f64| {
            let mut output = Output::poisoned(&case.problem);
            for head in values.chunks_exact(values.len() / heads) {
                let squares: f64 = head.iter().map(|(_, value)| value * value).sum();
                let unit = (squares / head.len() as f64).sqrt();
                for (index, value) in head {
                    output.set(*index, value + off(index / head.len()) * unit);
                }
            }
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            fault(&case, InputKind::Competition, &errors, &rules)
        };
        let either = |head: usize| if head.is_multiple_of(2) { 2e-4 } else { -2e-4 };
        assert_eq!(said(either), None);
        let told = said(|head| if head == 5 { 4e-4 } else { 0.0 }).unwrap();
        assert!(told.starts_with("part 5: bias +4"), "{told}");
    }

    #[test]
    fn one_element_far_off_is_told_though_the_mean_square_is_small() {
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let rules = Correctness::default();
        // The element nearest to zero has the least tolerance in proportion to the rest.
        let (least, value) = expected
            .values()
            .min_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
            .unwrap();
        let off = value + 3.0 * (rules.tolerance.absolute + rules.tolerance.relative * value.abs());
        let fault = said(
            InputKind::Wide,
            |index, value| if index == least { off } else { value },
        );
        assert!(fault.unwrap().contains("1 elements are outside the tolerance"));
    }

    /// Attention on int8 operands, against the oracle on the operands before they were quantised, by limits widened until
    /// int8's own error passes. An encoder of 127.5 steps before a decoder of 127 passes them as well: its bias does not.
    #[test]
    fn an_encoder_and_a_decoder_of_other_steps_are_told_by_their_bias_alone() {
        let attention = |format| Attention {
            sequences: vec![Sequence {
                queries: 256,
                keys: 256,
            }],
            heads: 4,
            kv_heads: 4,
            head_size: 64,
            causal: true,
            format,
            scaling: Scaling::PerHead,
            output: OutputFormat::F32,
        };
        let case = Case {
            problem: Problem::Attention(attention(AttentionFormat::F16)),
            ..case(Form::Plain)
        };
        let rules = Correctness {
            nrmse: 0.02,
            tolerance: Tolerance {
                relative: 0.0,
                absolute: 0.06,
            },
            ..Correctness::default()
        };
        let inputs = Inputs::generate(&case.problem, InputKind::Competition, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let Inputs::Attention(exact) = inputs else {
            panic!("attention was asked for")
        };
        let said = |encoder_steps: f32| {
            let encode = |tensor: &HeadTensor| {
                let values: Vec<f32> = tensor.dequantise(0..tensor.len()).collect();
                let heads: Vec<Vec<f32>> = values.chunks(256 * 64).map(<[f32]>::to_vec).collect();
                let mut quantised = HeadTensor::quantise(AttentionFormat::Int8, Scaling::PerHead, 64, &heads);
                let codes = heads.iter().zip(&quantised.scales).flat_map(|(head, scale)| {
                    let largest = scale * int8::STEPS;
                    head.iter()
                        .map(move |&value| int8::encode(value, largest, encoder_steps).cast_unsigned())
                });
                quantised.bytes = codes.collect();
                quantised
            };
            let inputs = Inputs::Attention(AttentionInputs {
                query: encode(&exact.query),
                key: encode(&exact.key),
                value: encode(&exact.value),
            });
            let problem = Problem::Attention(attention(AttentionFormat::Int8));
            let computed = Oracle::compute(&problem, &inputs, Coverage::Full).unwrap();
            let mut output = Output::poisoned(&problem);
            computed
                .values()
                .for_each(|(index, value)| output.set(index, value));
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            (fault(&case, InputKind::Competition, &errors, &rules), errors)
        };
        let (matched, errors) = said(int8::STEPS);
        assert_eq!(matched, None, "{errors}");
        let (mismatched, errors) = said(int8::RECORDED_ENCODER_STEPS);
        assert!(errors.nrmse < rules.nrmse && errors.mismatches == 0, "{errors}");
        assert!(errors.mean_outward > 2e-3, "{errors}");
        assert!(mismatched.unwrap().starts_with("bias away from zero"), "{errors}");
    }
}
