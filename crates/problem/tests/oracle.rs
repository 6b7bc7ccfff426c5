#![expect(clippy::unwrap_used, reason = "tests")]
//! The oracle on cases that can be checked by hand, and against a slow second computation.

use gauntlet_formats::{Nvfp4Tensor, e4m3};
use gauntlet_problem::{
    Attention, AttentionFormat, AttentionInputs, Coverage, Form, GemmShape, GroupInputs, GroupedGemm,
    HeadTensor, InputKind, Inputs, Oracle, Problem, Scaling, Sequence,
};
use half::f16;
use proptest::prelude::*;

fn gemm(groups: &[[usize; 3]], form: Form) -> Problem {
    let groups = groups.iter().map(|&[m, n, k]| GemmShape { m, n, k }).collect();
    Problem::GroupedGemm(GroupedGemm {
        groups,
        form,
        output: Default::default(),
    })
}

/// The values of a problem whose outputs are all computed, in order.
fn full(problem: &Problem, inputs: &Inputs) -> Vec<f64> {
    let expected = Oracle::compute(problem, inputs, Coverage::Full).unwrap();
    let mut values: Vec<(usize, f64)> = expected.values().collect();
    values.sort_by_key(|&(index, _)| index);
    assert!(
        values
            .iter()
            .enumerate()
            .all(|(place, &(index, _))| place == index)
    );
    values.into_iter().map(|(_, value)| value).collect()
}

fn one_product(a: Nvfp4Tensor, b: Nvfp4Tensor, b2: Option<Nvfp4Tensor>) -> Vec<f64> {
    let form = if b2.is_some() { Form::Swiglu } else { Form::Plain };
    let problem = gemm(&[[a.rows(), b.rows(), a.columns()]], form);
    full(&problem, &Inputs::GroupedGemm(vec![GroupInputs { a, b, b2 }]))
}

#[test]
fn one_element_is_the_sum_of_its_products() {
    // Values 1, 2 and 3 under scale 2 and tensor scale .5, times 6, −4 and .5 under scale 1: 6 − 8 + 1.5.
    let a = Nvfp4Tensor::new(1, 16, vec![0x42, 0x05, 0, 0, 0, 0, 0, 0], vec![0x40], 0.5).unwrap();
    let b = Nvfp4Tensor::new(1, 16, vec![0xE7, 0x01, 0, 0, 0, 0, 0, 0], vec![0x38], 1.0).unwrap();
    assert_eq!(one_product(a, b, None), [6.0 - 8.0 + 1.5 + 0.0]);
}

#[test]
fn the_identity_gives_back_the_tokens() {
    let mut identity = vec![0u8; 16 * 8];
    for row in 0..16 {
        identity[row * 8 + row / 2] = if row % 2 == 0 { 0x02 } else { 0x20 };
    }
    let identity = Nvfp4Tensor::new(16, 16, identity, vec![0x38; 16], 1.0).unwrap();
    let row = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let tokens = Nvfp4Tensor::new(3, 16, row.repeat(3), vec![0x38, 0x40, 0x01], -0.75).unwrap();
    assert_eq!(
        one_product(tokens.clone(), identity, None),
        tokens.dequantise_scaled()
    );
}

#[test]
fn the_dual_form_is_silu_of_the_first_times_the_second() {
    let row = |code: u8| Nvfp4Tensor::new(1, 16, vec![code, 0, 0, 0, 0, 0, 0, 0], vec![0x38], 1.0).unwrap();
    // 2 · 1 = 2 and 2 · −1.5 = −3.
    let value = one_product(row(0x04), row(0x02), Some(row(0x0B)))[0];
    assert!(
        (value - 2.0 / (1.0 + (-2.0f64).exp()) * -3.0).abs() < 1e-15,
        "{value}"
    );
    // silu(x) is not symmetric: exchanging the weights shows.
    let exchanged = one_product(row(0x04), row(0x0B), Some(row(0x02)))[0];
    assert!(
        (exchanged - -3.0 / (1.0 + 3.0f64.exp()) * 2.0).abs() < 1e-15,
        "{exchanged}"
    );
}

#[test]
fn a_sample_agrees_with_the_whole_and_covers_ends() {
    let problem = gemm(&[[300, 270, 96], [0, 16, 32], [1, 1, 16]], Form::Swiglu);
    let inputs = Inputs::generate(&problem, InputKind::Wide, 4);
    let whole = full(&problem, &inputs);
    let sample = Oracle::compute(
        &problem,
        &inputs,
        Coverage::Sampled {
            rows: 7,
            columns: 5,
            seed: 3,
        },
    )
    .unwrap();
    assert_eq!(sample.elements(), 7 * 270 + 293 * 5 + 1);
    let mut indices: Vec<usize> = Vec::new();
    for (index, value) in sample.values() {
        // Sums of other lengths may be taken in another order.
        assert!(
            (value - whole[index]).abs() <= 1e-11 * (1.0 + whole[index].abs()),
            "{index}"
        );
        indices.push(index);
    }
    assert!(indices.contains(&0) && indices.contains(&(300 * 270 - 1)) && indices.contains(&(300 * 270)));
    let count = indices.len();
    indices.sort_unstable();
    indices.dedup();
    assert_eq!(indices.len(), count, "an element was computed twice");
}

fn attention(sequences: &[[usize; 2]], heads: [usize; 2], head_size: usize, causal: bool) -> Attention {
    Attention {
        sequences: sequences
            .iter()
            .map(|&[queries, keys]| Sequence { queries, keys })
            .collect(),
        heads: heads[0],
        kv_heads: heads[1],
        head_size,
        causal,
        format: AttentionFormat::E4m3,
        scaling: Scaling::PerHead,
        output: Default::default(),
    }
}

#[test]
fn two_keys_by_hand() {
    let halves = |values: &[f32]| HeadTensor {
        format: AttentionFormat::F16,
        bytes: values
            .iter()
            .flat_map(|&value| f16::from_f32(value).to_le_bytes())
            .collect(),
        scales: vec![1.0],
    };
    let problem = Attention {
        format: AttentionFormat::F16,
        ..attention(&[[1, 2]], [1, 1], 4, false)
    };
    let inputs = AttentionInputs {
        query: halves(&[2.0, 0.0, 0.0, 0.0]),
        key: halves(&[1.0, 5.0, 5.0, 5.0, -1.0, 0.0, 0.0, 0.0]),
        value: halves(&[1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0]),
    };
    let values = full(&Problem::Attention(problem), &Inputs::Attention(inputs));
    // Scores ±2 / √4: weights e¹ and e⁻¹ over their sum, whose difference is tanh 1.
    for (column, value) in values.into_iter().enumerate() {
        assert!(
            (value - 1.0f64.tanh() * (column + 1) as f64).abs() < 1e-15,
            "{value}"
        );
    }
}

#[test]
fn values_of_one_give_one() {
    let problem = attention(&[[33, 47], [5, 130]], [4, 2], 24, false);
    let generated = Inputs::generate(&Problem::Attention(problem.clone()), InputKind::Wide, 9);
    let Inputs::Attention(mut inputs) = generated else {
        unreachable!("attention was asked for")
    };
    inputs.value.bytes.fill(e4m3::encode(1.0));
    inputs.value.scales.fill(1.0);
    for value in full(&Problem::Attention(problem), &Inputs::Attention(inputs)) {
        assert!((value - 1.0).abs() < 1e-14, "{value}");
    }
}

/// The second key head of adversarial operands: one key outweighs all others, and has no value.
#[test]
fn many_small_weights_are_a_whole_result() {
    for scaling in Scaling::ALL {
        for format in [AttentionFormat::E4m3, AttentionFormat::Int8, AttentionFormat::F16] {
            for head_size in [8, 64, 128] {
                let scaling = if format.has_scales() {
                    scaling
                } else {
                    Scaling::PerHead
                };
                let problem = Attention {
                    format,
                    scaling,
                    ..attention(&[[3, 400]], [2, 2], head_size, false)
                };
                let wrapped = Problem::Attention(problem.clone());
                let inputs = Inputs::generate(&wrapped, InputKind::Adversarial, 5);
                let results = full(&wrapped, &inputs);
                let Inputs::Attention(mut inputs) = inputs else {
                    unreachable!("attention was asked for")
                };
                let tail = &results[3 * head_size..];
                // 399 values near 4 that weigh 2⁻¹⁰ to 2⁻¹⁵ each.
                assert!(
                    tail.iter().all(|value| (0.03..1.6).contains(value)),
                    "{problem}: {tail:?}"
                );
                // Once more with a value of 1 for the first key and of 0 for the others: what it weighs.
                let one = HeadTensor::quantise(
                    format,
                    scaling,
                    head_size,
                    &[0, 1].map(|_| (0..400 * head_size).map(|at| f32::from(at < head_size)).collect()),
                );
                inputs.value = one;
                let weight = full(&wrapped, &Inputs::Attention(inputs))[3 * head_size];
                // So each of the others weighs a 399th of the rest on average, and at most 2⁻¹⁰ of it: e4m3, whose
                // least step is 2⁻⁹, flushes them all, unless they are scaled beforehand.
                assert!(
                    (1.0 - weight) / weight / 399.0 < 1.0 / 1024.0,
                    "{problem}: {weight}"
                );
            }
        }
    }
}

#[test]
fn causal_queries_before_the_first_key_are_zero() {
    let problem = attention(&[[5, 3]], [1, 1], 2, true);
    let wrapped = Problem::Attention(problem.clone());
    let Inputs::Attention(inputs) = Inputs::generate(&wrapped, InputKind::Competition, 2) else {
        unreachable!("attention was asked for")
    };
    let values = full(&wrapped, &Inputs::Attention(inputs.clone()));
    assert_eq!(values[..4], [0.0; 4]);
    // Query 2 is the first to see a key, and sees one: the first value itself.
    let scale = f64::from(inputs.value.scales[0]);
    assert_eq!(
        values[4..6],
        [0, 1].map(|at| f64::from(inputs.value.get(at)) * scale)
    );
    assert_ne!(values[8..10], [0.0; 2]);
}

/// Attention once more: one element at a time, with none of the oracle's indexing or matrices.
fn slow_attention(problem: &Attention, inputs: &AttentionInputs) -> Vec<f64> {
    let mut results = Vec::new();
    let (mut query_start, mut key_start) = (0, 0);
    let (mut query_scale, mut key_scale) = (0, 0);
    for sequence in &problem.sequences {
        let blocks = |positions: usize| match problem.scaling {
            Scaling::PerBlock => positions.div_ceil(64),
            Scaling::PerTensor | Scaling::PerHead => 1,
        };
        for head in 0..problem.heads {
            let kv_head = head * problem.kv_heads / problem.heads;
            let at = |tensor: &HeadTensor,
                      first_scale: usize,
                      start: usize,
                      head: usize,
                      length: usize,
                      row: usize,
                      column: usize| {
                let element = start + (head * length + row) * problem.head_size + column;
                let block = if problem.scaling == Scaling::PerBlock {
                    row / 64
                } else {
                    0
                };
                let scale = tensor.scales[first_scale + head * blocks(length) + block];
                f64::from(tensor.get(element)) * f64::from(scale)
            };
            let query = |row, column| {
                at(
                    &inputs.query,
                    query_scale,
                    query_start,
                    head,
                    sequence.queries,
                    row,
                    column,
                )
            };
            let key = |row, column| {
                at(
                    &inputs.key,
                    key_scale,
                    key_start,
                    kv_head,
                    sequence.keys,
                    row,
                    column,
                )
            };
            let value = |row, column| {
                at(
                    &inputs.value,
                    key_scale,
                    key_start,
                    kv_head,
                    sequence.keys,
                    row,
                    column,
                )
            };
            for row in 0..sequence.queries {
                let visible =
                    |other: usize| !problem.causal || other + sequence.queries <= row + sequence.keys;
                let scores: Vec<(usize, f64)> = (0..sequence.keys)
                    .filter(|&other| visible(other))
                    .map(|other| {
                        let dot: f64 = (0..problem.head_size)
                            .map(|c| query(row, c) * key(other, c))
                            .sum();
                        (other, dot / (problem.head_size as f64).sqrt())
                    })
                    .collect();
                let largest = scores
                    .iter()
                    .fold(f64::NEG_INFINITY, |largest, score| largest.max(score.1));
                let total: f64 = scores.iter().map(|score| (score.1 - largest).exp()).sum();
                for column in 0..problem.head_size {
                    let weighted = scores
                        .iter()
                        .map(|&(other, s)| (s - largest).exp() * value(other, column));
                    results.push(if scores.is_empty() {
                        0.0
                    } else {
                        weighted.sum::<f64>() / total
                    });
                }
            }
        }
        query_start += sequence.queries * problem.heads * problem.head_size;
        key_start += sequence.keys * problem.kv_heads * problem.head_size;
        query_scale += problem.heads * blocks(sequence.queries);
        key_scale += problem.kv_heads * blocks(sequence.keys);
    }
    results
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn attention_agrees_with_a_slow_second_computation(
        // Now and then more than one block of scales, on either side.
        sequences in prop::collection::vec((0usize..9, 1usize..9, 0usize..6), 1..4),
        kv_heads in 1usize..3,
        share in 1usize..3,
        head_size in 1usize..9,
        causal in any::<bool>(),
        (format, scaling) in prop::sample::select(vec![
            (AttentionFormat::E4m3, Scaling::PerTensor),
            (AttentionFormat::E4m3, Scaling::PerHead),
            (AttentionFormat::E4m3, Scaling::PerBlock),
            (AttentionFormat::Int8, Scaling::PerBlock),
            (AttentionFormat::F16, Scaling::PerHead),
            (AttentionFormat::Bf16, Scaling::PerHead),
        ]),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let lengths = |(queries, keys, long)| match long {
            0 => [queries + 64, keys],
            1 => [queries, keys + 130],
            _ => [queries, keys],
        };
        let lengths: Vec<[usize; 2]> = sequences.into_iter().map(lengths).collect();
        let problem = Attention { format, scaling, ..attention(&lengths, [kv_heads * share, kv_heads], head_size, causal) };
        let wrapped = Problem::Attention(problem.clone());
        let inputs = Inputs::generate(&wrapped, kind, seed);
        let values = full(&wrapped, &inputs);
        let Inputs::Attention(inputs) = inputs else { unreachable!("attention was asked for") };
        for (found, expected) in values.iter().zip(slow_attention(&problem, &inputs)) {
            prop_assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }

    #[test]
    fn products_agree_with_a_slow_second_computation(
        shapes in prop::collection::vec((0usize..7, 1usize..7, 1usize..4), 1..4),
        form in prop::sample::select(vec![Form::Plain, Form::Swiglu]),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let shapes: Vec<[usize; 3]> = shapes.into_iter().map(|(m, n, blocks)| [m, n, 16 * blocks]).collect();
        let problem = gemm(&shapes, form);
        let inputs = Inputs::generate(&problem, kind, seed);
        let mut values = full(&problem, &inputs).into_iter();
        let Inputs::GroupedGemm(groups) = inputs else { unreachable!("a GEMM was asked for") };
        for (group, [m, n, k]) in groups.iter().zip(shapes) {
            let a = group.a.dequantise_scaled();
            let dot = |weights: &[f64], row: usize, column: usize| -> f64 {
                (0..k).map(|at| a[row * k + at] * weights[column * k + at]).sum()
            };
            let (b, b2) = (group.b.dequantise_scaled(), group.b2.as_ref().map(Nvfp4Tensor::dequantise_scaled));
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let first = dot(&b, row, column);
                let expected = match &b2 {
                    None => first,
                    Some(b2) => first / (1.0 + (-first).exp()) * dot(b2, row, column),
                };
                let found = values.next().unwrap();
                prop_assert!((found - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{found} {expected}");
                prop_assert!(found.abs() < 65504.0, "{found} is over the range of f16");
            }
        }
    }
}

#[test]
fn depth_over_one_panel_is_summed_whole() {
    let problem = gemm(&[[2, 3, 8240]], Form::Plain);
    let inputs = Inputs::generate(&problem, InputKind::Competition, 6);
    let Inputs::GroupedGemm(groups) = &inputs else {
        unreachable!("a GEMM was asked for")
    };
    let (a, b) = (groups[0].a.dequantise_scaled(), groups[0].b.dequantise_scaled());
    let dot = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(a, b)| a * b).sum::<f64>();
    let expected: Vec<f64> = a
        .chunks(8240)
        .flat_map(|row| b.chunks(8240).map(move |column| dot(row, column)))
        .collect();
    // Every sum of competition data is exact.
    assert_eq!(full(&problem, &inputs), expected);
}

#[test]
fn operands_of_another_problem_are_refused() {
    let problem = gemm(&[[4, 4, 32]], Form::Plain);
    let inputs = Inputs::generate(&gemm(&[[4, 5, 32]], Form::Plain), InputKind::Wide, 1);
    let error = Oracle::compute(&problem, &inputs, Coverage::Full).unwrap_err();
    assert_eq!(error.to_string(), "0.b is 5 × 32, but the problem takes 4 × 32");
    let dual = Inputs::generate(&gemm(&[[4, 4, 32]], Form::Swiglu), InputKind::Wide, 1);
    assert!(dual.validate(&problem).is_err());
}
