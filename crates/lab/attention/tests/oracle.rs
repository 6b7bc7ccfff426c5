#![expect(clippy::unwrap_used, reason = "tests")]
//! The oracle on cases that can be checked by hand, and against a slow second computation.

use gauntlet_attention::{ATTENTION, generate, grids};
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, HeadTensor, Inputs, Operation, Scaling,
};
use gauntlet_task::{Coverage, Expected, InputKind, Sizes};
use gauntlet_tensors::e4m3;
use half::f16;
use proptest::prelude::*;

/// The values of the outputs, all computed, by sequence and head and place.
fn full(attention: &Attention, inputs: &AttentionInputs) -> Vec<f64> {
    let operation = Operation::Attention(attention.clone());
    Inputs::Attention(inputs.clone()).validate(&operation).unwrap();
    let grids = grids(attention, inputs, Coverage::Full);
    let expected = Expected::new(Coverage::Full, &operation.outputs(), grids);
    let mut values: Vec<(usize, usize, f64)> = expected.values().collect();
    values.sort_by_key(|&(part, index, _)| (part, index));
    let places: Vec<(usize, usize)> = values.iter().map(|&(part, index, _)| (part, index)).collect();
    let all = operation.outputs().into_iter().enumerate();
    let all: Vec<(usize, usize)> = all
        .flat_map(|(part, spec)| (0..spec.elements()).map(move |index| (part, index)))
        .collect();
    assert_eq!(places, all, "each element is computed once");
    values.into_iter().map(|(_, _, value)| value).collect()
}

fn attention(sequences: &[[usize; 2]], heads: [usize; 2], head_size: usize, causal: bool) -> Attention {
    Attention {
        causal,
        ..Attention::new(AttentionFormat::E4m3, sequences.iter().copied(), heads, head_size)
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
    let values = full(&problem, &inputs);
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
    let mut inputs = generate(&problem, InputKind::Wide, 9);
    inputs.value.bytes.fill(e4m3::encode(1.0));
    inputs.value.scales.fill(1.0);
    for value in full(&problem, &inputs) {
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
                let mut inputs = generate(&problem, InputKind::Adversarial, 5);
                let results = full(&problem, &inputs);
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
                let weight = full(&problem, &inputs)[3 * head_size];
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
    let inputs = generate(&problem, InputKind::Competition, 2);
    let values = full(&problem, &inputs);
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
        let inputs = generate(&problem, kind, seed);
        let values = full(&problem, &inputs);
        for (found, expected) in values.iter().zip(slow_attention(&problem, &inputs)) {
            prop_assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }
}

#[test]
fn small_results_are_computed_whole_and_large_ones_sampled() {
    let sizes = |length| -> Sizes {
        let attention = Attention {
            format: AttentionFormat::F16,
            ..attention(&[[length, length]], [8, 8], 64, false)
        };
        ATTENTION.open(&serde_json::to_value(attention).unwrap()).unwrap()
    };
    assert_eq!(sizes(512).coverage(5), Coverage::Full);
    for (length, rows) in [(2048, 256), (1 << 20, 8)] {
        assert_eq!(
            sizes(length).coverage(5),
            Coverage::Sampled {
                rows,
                columns: 0,
                seed: 5
            }
        );
    }
    assert_eq!(
        sizes(2048).spot(5),
        Coverage::Sampled {
            rows: 2,
            columns: 0,
            seed: 5
        }
    );
}
