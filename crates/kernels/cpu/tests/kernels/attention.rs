//! Attention against the f64 oracle: every instruction set, every word of the schedule, every kind of input.

use crate::support::{any_output, any_schedule, any_simd, assert_close, elements, expected, run, schedule};
use gauntlet_families::operations::generate;
use gauntlet_kernels_cpu::SimdPath;
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, HeadTensor, Inputs, Operation, OutputFormat, Scaling,
    Schedule, Sequence, Tile,
};
use gauntlet_task::InputKind;
use proptest::prelude::*;

/// Every format with every scaling that it takes.
fn formats() -> Vec<(AttentionFormat, Scaling)> {
    let scaled = |format| Scaling::ALL.map(|scaling| (format, scaling)).to_vec();
    [
        scaled(AttentionFormat::E4m3),
        scaled(AttentionFormat::Int8),
        vec![
            (AttentionFormat::F16, Scaling::PerHead),
            (AttentionFormat::Bf16, Scaling::PerHead),
        ],
    ]
    .concat()
}

fn any_attention() -> impl Strategy<Value = Attention> {
    let sequence = (prop_oneof![Just(0), 1..80_usize], 1..120_usize)
        .prop_map(|(queries, keys)| Sequence { queries, keys });
    (
        prop::collection::vec(sequence, 1..4),
        1..3_usize,
        1..3_usize,
        prop::sample::select(vec![8, 16, 24, 32, 64, 72, 128]),
        any::<bool>(),
        prop::sample::select(formats()),
        any_output(),
    )
        .prop_map(
            |(sequences, kv_heads, share, head_size, causal, (format, scaling), output)| Attention {
                sequences,
                heads: kv_heads * share,
                kv_heads,
                head_size,
                causal,
                format,
                scaling,
                output,
            },
        )
}

fn any_tile() -> impl Strategy<Value = Tile> {
    // In about half of the cases, whole chunks of a tile unit.
    let side = || prop_oneof![1..70_usize, prop::sample::select(vec![32, 64, 96])];
    (side(), side()).prop_map(|(m, n)| Tile { m, n, k: 0 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_computes_any_problem(
        attention in any_attention(),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        schedule in any_schedule(any_tile()),
        simd in any_simd(),
        threads in 2..5_usize,
        seed in any::<u64>(),
    ) {
        let schedule = Schedule { tile: Tile { k: attention.head_size, ..schedule.tile }, ..schedule };
        let problem = Operation::Attention(attention);
        let inputs = generate(&problem, kind, seed);
        let result = run(simd, threads, &problem, &schedule, &inputs);
        assert_close(&result, &expected(&problem, &inputs));
    }
}

fn problem(lengths: [usize; 2], head_size: usize, causal: bool, format: AttentionFormat) -> Operation {
    Operation::Attention(Attention {
        causal,
        output: OutputFormat::F32,
        ..Attention::new(format, [[lengths[0], lengths[1]]], [2, 1], head_size)
    })
}

/// Averages of ones are one, up to the rounding of f32 sums.
#[test]
fn values_of_one_give_one() {
    for (format, scaling) in formats() {
        let Operation::Attention(attention) = problem([50, 200], 64, true, format) else {
            unreachable!("attention")
        };
        let problem = Operation::Attention(Attention { scaling, ..attention });
        let Inputs::Attention(mut inputs) = generate(&problem, InputKind::Wide, 3) else {
            unreachable!("attention")
        };
        inputs.value = HeadTensor::quantise(format, scaling, 64, &[vec![1.0; 200 * 64]]);
        let inputs = Inputs::Attention(inputs);
        for simd in SimdPath::available() {
            for (swap_ab, split_k) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
                let schedule = Schedule {
                    swap_ab,
                    split_k,
                    ..schedule([32, 32, 64])
                };
                let output = run(simd, 2, &problem, &schedule, &inputs);
                for index in 0..2 * 50 * 64 {
                    assert!(
                        (output.get(index) - 1.0).abs() < 2e-6,
                        "{simd} {swap_ab} {split_k} {problem} {index} {}",
                        output.get(index)
                    );
                }
            }
        }
    }
}

/// Weights of 2⁻¹⁰ to 2⁻¹⁵ of the largest are not lost, regardless of how the keys are split.
#[test]
fn many_small_weights_add_up() {
    for (format, scaling) in formats() {
        let Operation::Attention(attention) = problem([20, 700], 64, false, format) else {
            unreachable!("attention")
        };
        let problem = Operation::Attention(Attention {
            kv_heads: 2,
            scaling,
            ..attention
        });
        let inputs = generate(&problem, InputKind::Adversarial, 3);
        let wanted = expected(&problem, &inputs);
        for simd in SimdPath::available() {
            for (swap_ab, split_k) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
                let schedule = Schedule {
                    swap_ab,
                    split_k,
                    ..schedule([32, 32, 64])
                };
                let output = run(simd, 2, &problem, &schedule, &inputs);
                for (index, wanted) in elements(&wanted).skip(20 * 64) {
                    let found = f64::from(output.get(index));
                    assert!(
                        (found - wanted).abs() < 1e-5 * wanted,
                        "{simd} {problem}: {found} for {wanted}"
                    );
                }
            }
        }
    }
}

/// A tile unit computes in bf16, and its results are as accurate as those computed in f32.
#[test]
fn a_tile_unit_errs_no_more_than_f32() {
    for (format, scaling) in formats().into_iter().filter(|(format, _)| format.has_scales()) {
        let Operation::Attention(attention) = problem([130, 333], 64, true, format) else {
            unreachable!("attention")
        };
        let problem = Operation::Attention(Attention { scaling, ..attention });
        for kind in InputKind::ALL {
            let inputs = generate(&problem, kind, 3);
            let wanted = expected(&problem, &inputs);
            for simd in SimdPath::available() {
                let schedule = Schedule {
                    swap_ab: true,
                    ..schedule([96, 64, 64])
                };
                assert_close(&run(simd, 2, &problem, &schedule, &inputs), &wanted);
            }
        }
    }
}

/// Scores of 10³⁰ and scales of either sign leave one key with all the weight, and no NaN.
#[test]
fn extreme_scales_choose_one_key() {
    let problem = problem([3, 5], 16, false, AttentionFormat::E4m3);
    let head = |rows: Vec<u8>, scales: Vec<f32>| HeadTensor {
        format: AttentionFormat::E4m3,
        bytes: rows.iter().flat_map(|code| [*code; 16]).collect(),
        scales,
    };
    for (query, key) in [(1e30, 1e8), (f32::MAX, f32::MAX), (-f32::MAX, f32::MAX)] {
        let inputs = Inputs::Attention(AttentionInputs {
            // Ones.
            query: head(vec![0x38; 6], vec![query; 2]),
            // 0, 1, 2, 4 and −1: the third from the end wins, or the last if the scale is negative.
            key: head(vec![0x00, 0x38, 0x40, 0x48, 0xB8], vec![key]),
            value: head(vec![0x30, 0x34, 0x38, 0x3C, 0x40], vec![0.5]),
        });
        let winner = if query > 0.0 { 0.75 } else { 1.0 };
        for simd in SimdPath::available() {
            for swap_ab in [false, true] {
                let schedule = Schedule {
                    swap_ab,
                    ..schedule([2, 2, 16])
                };
                let output = run(simd, 2, &problem, &schedule, &inputs);
                assert!((0..96).all(|index| output.get(index) == winner), "{simd} {query}");
            }
        }
    }
}

/// Queries before the first key they could see yield 0.
#[test]
fn queries_that_see_nothing_yield_zero() {
    let problem = problem([40, 10], 32, true, AttentionFormat::F16);
    let inputs = generate(&problem, InputKind::Wide, 9);
    for split_k in [1, 2] {
        let output = run(
            SimdPath::best(),
            3,
            &problem,
            &Schedule {
                split_k,
                ..schedule([16, 16, 32])
            },
            &inputs,
        );
        for head in 0..2 {
            for index in 0..40 * 32 {
                let value = output.get(head * 40 * 32 + index);
                assert_eq!(index < 30 * 32, value == 0.0, "element {index}");
            }
        }
    }
}
