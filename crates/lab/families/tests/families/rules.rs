#![expect(clippy::unwrap_used, reason = "tests")]
//! When a result counts as correct, by the rules of the built-in tasks.

use gauntlet_nvfp4::int8;
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, Form, GemmShape, GroupedGemm, HeadTensor, Operation,
    OutputFormat, Scaling,
};
use gauntlet_task::{Coverage, ErrorMeasures, Expected, InputKind, Output, Rules, Sizes, Tolerance};

use super::sizes;

fn gemm_of(shapes: Vec<GemmShape>, form: Form, output: OutputFormat) -> Sizes {
    sizes(Operation::GroupedGemm(GroupedGemm {
        groups: shapes,
        form,
        output,
        tokens: Default::default(),
    }))
}

fn gemm(form: Form) -> Sizes {
    gemm_of(vec![GemmShape { m: 96, n: 128, k: 64 }], form, OutputFormat::F32)
}

fn expected(sizes: &Sizes, kind: InputKind) -> Expected {
    sizes
        .expected(&*sizes.generate(kind, 7).unwrap(), Coverage::Full)
        .unwrap()
}

/// The reference's own result, with each element changed by `tamper`, which gets the index of the output tensor and
/// that of the element.
fn tampered(sizes: &Sizes, expected: &Expected, tamper: impl Fn(usize, usize, f64) -> f64) -> Output {
    let mut output = Output::poisoned(&sizes.outputs());
    for (part, index, value) in expected.values() {
        output.0[part].set(index, tamper(part, index, value));
    }
    output
}

/// The rules' verdict on a result of the plain product whose elements were changed by `tamper`.
fn said(kind: InputKind, tamper: impl Fn(usize, f64) -> f64) -> Option<String> {
    let (sizes, rules) = (gemm(Form::Plain), Rules::default());
    let expected = expected(&sizes, kind);
    let output = tampered(&sizes, &expected, |_, index, value| tamper(index, value));
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    rules.fault(&errors, sizes.rightness(Some(kind)))
}

fn root_mean_square_of(values: &[f64]) -> f64 {
    (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
}

/// The root mean square of the reference's result on the operands of [`said`].
fn root_mean_square() -> f64 {
    let expected = expected(&gemm(Form::Plain), InputKind::Wide);
    root_mean_square_of(&expected.values().map(|(_, _, value)| value).collect::<Vec<_>>())
}

#[test]
fn the_right_result_passes() {
    for kind in InputKind::ALL {
        assert_eq!(said(kind, |_, value| value), None);
    }
}

#[test]
fn the_nearest_that_the_format_holds_is_right_however_far_that_is() {
    let sizes = gemm_of(
        vec![GemmShape { m: 1, n: 3, k: 16 }],
        Form::Plain,
        OutputFormat::F16,
    );
    let mut output = Output::poisoned(&sizes.outputs());
    // Subnormal in f16, where the step is 2⁻²⁴.
    (0..3).for_each(|index| output.0[0].set(index, 1e-6));
    let mut expected = Expected::of(&output);
    expected.parts[0].grids[0].values = vec![1e-6; 3];
    let rules = Rules::default();
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    assert!(errors.nrmse > rules.nrmse, "{errors}");
    assert_eq!(rules.fault(&errors, sizes.rightness(Some(InputKind::Wide))), None);
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
            .starts_with("1 element of `0.c` is NaN, the first at row 0, column 5")
    );
}

#[test]
fn the_last_bit_counts_where_every_order_of_summation_is_exact() {
    let fault = said(InputKind::Competition, |index, value| {
        if index == 5 { value + 0.25 } else { value }
    });
    assert!(fault.unwrap().starts_with("1 element differs from the oracle"));
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
    // 3e-4 of the root mean square, always upward: below the limit on NRMSE, as from a biased quantiser.
    let shift = 3e-4 * root_mean_square();
    assert!(
        said(InputKind::Wide, |_, value| value + shift)
            .unwrap()
            .starts_with("bias +3.00e-4")
    );
    // The same size of error with both signs equally likely is not a bias.
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

/// 3e-4 of the root mean square in one group of eight is a third of the limit for the whole.
#[test]
fn a_bias_of_one_group_is_told_though_it_is_lost_in_the_whole() {
    let sizes = gemm_of(
        vec![GemmShape { m: 96, n: 128, k: 64 }; 8],
        Form::Plain,
        OutputFormat::F32,
    );
    let expected = expected(&sizes, InputKind::Wide);
    let values: Vec<f64> = expected.values().map(|(_, _, value)| value).collect();
    let shift = 3e-4 * root_mean_square_of(&values);
    let rules = Rules::default();
    let said = |biased: usize| {
        let output = tampered(&sizes, &expected, |group, _, value| {
            let off = if group == biased { shift } else { 0.0 };
            value - off * value.signum()
        });
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        assert!(errors.mean_outward.abs() < rules.bias, "{errors}");
        rules.fault(&errors, sizes.rightness(Some(InputKind::Wide)))
    };
    assert_eq!(said(8), None);
    let told = said(5).unwrap();
    assert!(told.starts_with("`5.c`: bias toward zero"), "{told}");
}

/// One head of eight that is off by 4e-4 is reported; heads that are off by 2e-4, half of them up and half down, are
/// accepted as the effect of approximations.
#[test]
fn a_head_may_be_off_by_more_than_all_heads() {
    let heads = 8;
    let sizes = sizes(Operation::Attention(Attention {
        output: OutputFormat::F32,
        ..Attention::new(AttentionFormat::F16, [[64, 64]], [heads, heads], 64)
    }));
    let expected = expected(&sizes, InputKind::Competition);
    let units: Vec<f64> = (0..heads)
        .map(|head| {
            let own = expected.values().filter(|(part, ..)| *part == head);
            root_mean_square_of(&own.map(|(_, _, value)| value).collect::<Vec<_>>())
        })
        .collect();
    let rules = Rules::default();
    let said = |off: fn(usize) -> f64| {
        let output = tampered(&sizes, &expected, |head, _, value| {
            value + off(head) * units[head]
        });
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        rules.fault(&errors, sizes.rightness(Some(InputKind::Competition)))
    };
    let either = |head: usize| if head.is_multiple_of(2) { 2e-4 } else { -2e-4 };
    assert_eq!(said(either), None);
    let told = said(|head| if head == 5 { 4e-4 } else { 0.0 }).unwrap();
    assert!(told.starts_with("`5.c`: bias +4"), "{told}");
}

/// The element nearest to zero, which has the smallest tolerance relative to the other elements: its index, and a value
/// that is off by three times its tolerance.
fn least_element_far_off() -> (usize, f64) {
    let expected = expected(&gemm(Form::Plain), InputKind::Wide);
    let tolerance = Rules::default().tolerance;
    let (_, place, value) = expected
        .values()
        .min_by(|one, other| one.2.abs().total_cmp(&other.2.abs()))
        .unwrap();
    (
        place,
        value + 3.0 * (tolerance.absolute + tolerance.relative * value.abs()),
    )
}

#[test]
fn one_element_far_off_is_told_though_the_mean_square_is_small() {
    let (least, off) = least_element_far_off();
    let fault = said(
        InputKind::Wide,
        |index, value| if index == least { off } else { value },
    );
    assert!(fault.unwrap().contains("1 element is outside the tolerance"));
}

#[test]
fn a_share_of_elements_may_be_outside_the_tolerance_where_the_rules_allow_it() {
    let (least, off) = least_element_far_off();
    let sizes = gemm(Form::Plain);
    let expected = expected(&sizes, InputKind::Wide);
    let output = tampered(
        &sizes,
        &expected,
        |_, index, value| {
            if index == least { off } else { value }
        },
    );
    let said = |allowed_share: f64| {
        let rules = Rules {
            allowed_share,
            ..Rules::default()
        };
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        assert_eq!((errors.mismatches, errors.compared), (1, 96 * 128));
        rules.fault(&errors, sizes.rightness(Some(InputKind::Wide)))
    };
    let one_of_all = 1.0 / (96.0 * 128.0);
    assert_eq!(said(one_of_all), None);
    assert_eq!(said(2.0 * one_of_all), None);
    assert!(said(0.0).is_some());
    // A share of less than one element allows none.
    assert!(said(0.9 * one_of_all).is_some());
    // The share applies only to the tolerance: an unwritten element is never allowed.
    let mut output = output;
    output.0[0].set(least, f64::NAN);
    let rules = Rules {
        allowed_share: 1.0,
        ..Rules::default()
    };
    let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
    let told = rules
        .fault(&errors, sizes.rightness(Some(InputKind::Wide)))
        .unwrap();
    assert!(told.starts_with("1 element of `0.c` is NaN"), "{told}");
}

#[test]
fn bits_are_compared_only_where_the_operands_make_every_sum_exact() {
    let exact = |sizes: &Sizes, kind| sizes.rightness(kind).is_exact;
    let plain = gemm(Form::Plain);
    assert!(exact(&plain, Some(InputKind::Competition)));
    for kind in [InputKind::Wide, InputKind::Outliers, InputKind::Adversarial] {
        assert!(!exact(&plain, Some(kind)), "{kind}");
    }
    // Operands from a file have no kind.
    assert!(!exact(&plain, None));
    assert!(!exact(&gemm(Form::Swiglu), Some(InputKind::Competition)));
}

#[test]
fn rules_are_written_as_round_files_have_them() {
    let text = "tolerance = { relative = 0.01, absolute = 0.001 }\nnrmse = 0.002\n";
    let rules: Rules = toml::from_str(text).unwrap();
    let expected = Rules {
        tolerance: Tolerance {
            relative: 0.01,
            absolute: 0.001,
        },
        nrmse: 0.002,
        ..Rules::default()
    };
    assert_eq!(rules, expected);
    let written = toml::to_string(&rules).unwrap();
    assert!(!written.contains("allowed-share"), "{written}");
    let rules: Rules = toml::from_str("allowed-share = 0.25").unwrap();
    assert_eq!(rules.allowed_share, 0.25);
    assert_eq!(
        toml::from_str::<Rules>(&toml::to_string(&rules).unwrap()).unwrap(),
        rules
    );
    let unknown = toml::from_str::<Rules>("nmrse = 1").unwrap_err();
    assert!(unknown.message().contains("unknown field `nmrse`"), "{unknown}");
}

/// Attention on int8 operands, compared with the reference on the operands before quantisation, with limits widened
/// until int8's own error passes. An encoder of 127.5 steps with a decoder of 127 is also within those limits, but its
/// bias is not.
#[test]
fn an_encoder_and_a_decoder_of_other_steps_are_told_by_their_bias_alone() {
    let attention = |format| Attention {
        causal: true,
        output: OutputFormat::F32,
        ..Attention::new(format, [[256, 256]], [4, 4], 64)
    };
    let rules = Rules {
        nrmse: 0.02,
        tolerance: Tolerance {
            relative: 0.0,
            absolute: 0.06,
        },
        ..Rules::default()
    };
    let unquantised = sizes(Operation::Attention(attention(AttentionFormat::F16)));
    let exact = gauntlet_attention::generate(&attention(AttentionFormat::F16), InputKind::Competition, 7);
    let expected = expected(&unquantised, InputKind::Competition);
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
        let inputs = AttentionInputs {
            query: encode(&exact.query),
            key: encode(&exact.key),
            value: encode(&exact.value),
        };
        let attention = attention(AttentionFormat::Int8);
        let grids = gauntlet_attention::grids(&attention, &inputs, Coverage::Full);
        let sizes = sizes(Operation::Attention(attention));
        let computed = Expected::new(Coverage::Full, &sizes.outputs(), grids);
        let output = tampered(&sizes, &computed, |_, _, value| value);
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        let rightness = unquantised.rightness(Some(InputKind::Competition));
        (rules.fault(&errors, rightness), errors)
    };
    let (matched, errors) = said(int8::STEPS);
    assert_eq!(matched, None, "{errors}");
    let (mismatched, errors) = said(int8::RECORDED_ENCODER_STEPS);
    assert!(errors.nrmse < rules.nrmse && errors.mismatches == 0, "{errors}");
    assert!(errors.mean_outward > 2e-3, "{errors}");
    assert!(mismatched.unwrap().starts_with("bias away from zero"), "{errors}");
}
