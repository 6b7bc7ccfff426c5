//! Grouped GEMM against the f64 oracle: every instruction set, every word of the schedule, every kind of input.

use crate::support::{
    any_output, any_schedule, any_simd, assert_bits, assert_close, engine, expected, run, schedule,
};
use gauntlet_families::operations::generate;
use gauntlet_kernels_cpu::{FloatRows, GemmOperands, SimdPath, Weights};
use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::{
    FloatTensor, Form, GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, Output, OutputFormat, Roles,
    Setup, Tile, TokenFormat, Tokens,
};
use gauntlet_task::InputKind;
use proptest::prelude::*;

fn any_group() -> impl Strategy<Value = GemmShape> {
    let m = prop_oneof![Just(0), Just(1), 2..20_usize, 20..90_usize];
    (m, 1..8_usize, 0..5_usize, 1..24_usize).prop_map(|(m, n, offset, blocks)| GemmShape {
        m,
        n: n * 16 + offset * 3,
        k: blocks * 16,
    })
}

fn any_tile() -> impl Strategy<Value = Tile> {
    (1..70_usize, 1..70_usize, 1..10_usize).prop_map(|(m, n, k)| Tile { m, n, k: k * 16 })
}

fn any_tokens() -> impl Strategy<Value = TokenFormat> {
    prop::sample::select(FORMATS.to_vec())
}

const FORMATS: [TokenFormat; 4] = [
    TokenFormat::Nvfp4,
    TokenFormat::F16,
    TokenFormat::Bf16,
    TokenFormat::F32,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_computes_any_problem(
        groups in prop::collection::vec(any_group(), 1..4),
        dual in any::<bool>(),
        output in any_output(),
        tokens in any_tokens(),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        schedule in any_schedule(any_tile()),
        simd in any_simd(),
        threads in 2..5_usize,
        seed in any::<u64>(),
    ) {
        let form = if dual { Form::Swiglu } else { Form::Plain };
        let problem = Operation::GroupedGemm(GroupedGemm { groups, form, output, tokens });
        let inputs = generate(&problem, kind, seed);
        let result = run(simd, threads, &problem, &schedule, &inputs);
        let expected = expected(&problem, &inputs);
        if kind == InputKind::Competition && !dual {
            assert_bits(&result, &expected);
        }
        assert_close(&result, &expected);
    }
}

fn paths_and_formats() -> impl Iterator<Item = (SimdPath, TokenFormat)> {
    let paths = SimdPath::available().into_iter();
    paths.flat_map(|simd| FORMATS.map(|format| (simd, format)))
}

/// The bits do not depend on the number of threads.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let groups = vec![
        GemmShape { m: 45, n: 70, k: 336 },
        GemmShape { m: 9, n: 128, k: 160 },
    ];
    for (simd, tokens) in paths_and_formats() {
        let problem = Operation::GroupedGemm(GroupedGemm {
            groups: groups.clone(),
            form: Form::Swiglu,
            output: OutputFormat::F32,
            tokens,
        });
        let inputs = generate(&problem, InputKind::Wide, 5);
        let schedule = gauntlet_problems::Schedule {
            split_k: 3,
            ..schedule([16, 32, 64])
        };
        let one = run(simd, 1, &problem, &schedule, &inputs);
        for threads in 2..6 {
            assert!(run(simd, threads, &problem, &schedule, &inputs) == one);
            let specialised = gauntlet_problems::Schedule {
                roles: Roles::Specialised,
                ..schedule.clone()
            };
            assert!(run(simd, threads, &problem, &specialised, &inputs) == one);
        }
    }
}

/// Tensor scales at the ends of f32 neither overflow nor vanish before the result does.
#[test]
fn extreme_tensor_scales() {
    let tensor = |rows: usize, value: u8, scale: u8, tensor_scale: f32| {
        Nvfp4Tensor::new(
            rows,
            32,
            vec![value; rows * 16],
            vec![scale; rows * 2],
            tensor_scale,
        )
        .unwrap()
    };
    let shape = GemmShape { m: 3, n: 5, k: 32 };
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups: vec![shape],
        form: Form::Plain,
        output: OutputFormat::F32,
        tokens: Default::default(),
    });
    for simd in SimdPath::available() {
        for (left, right) in [
            (1e30, 1e-35),
            (f32::MAX, 1e-40),
            (1e-30, 1e-9),
            (-3e-39, 2e38),
            (1e-45, 1.0),
        ] {
            // 6 · 448 on one side, −1 · 2⁻⁹ on the other.
            let inputs = Inputs::GroupedGemm(vec![GroupInputs {
                a: tensor(3, 0x77, 0x7E, left).into(),
                b: tensor(5, 0xAA, 0x01, right),
                b2: None,
            }]);
            let result = run(simd, 2, &problem, &schedule([16, 16, 32]), &inputs);
            assert_bits(&result, &expected(&problem, &inputs));
        }
    }
}

/// Tokens at the ends of their formats, times weights at both ends: sums of equal products are exact.
#[test]
fn extreme_floats() {
    let cases = [
        (OutputFormat::F16, 65504.0, 1.0),
        (OutputFormat::F16, 2.0_f32.powi(-24), 1.0),
        (OutputFormat::F16, -65504.0, 1e-30),
        (OutputFormat::Bf16, 1e30, 1e-30),
        (OutputFormat::Bf16, -3e-30, 1e30),
        (OutputFormat::F32, 1.0 + f32::EPSILON, 1e-3),
    ];
    let shape = GemmShape { m: 3, n: 5, k: 32 };
    for (simd, (format, token, scale)) in SimdPath::available()
        .into_iter()
        .flat_map(|simd| cases.map(|case| (simd, case)))
    {
        let problem = Operation::GroupedGemm(GroupedGemm {
            groups: vec![shape],
            form: Form::Plain,
            output: OutputFormat::F32,
            tokens: format.into(),
        });
        for (value, block_scale) in [(0x77, 0x7E), (0xAA, 0x01), (0x22, 0x38)] {
            let weights =
                Nvfp4Tensor::new(5, 32, vec![value; 5 * 16], vec![block_scale; 5 * 2], scale).unwrap();
            let inputs = Inputs::GroupedGemm(vec![GroupInputs {
                a: Tokens::Floats(FloatTensor::round(format, 3, 32, &[token; 3 * 32])),
                b: weights,
                b2: None,
            }]);
            let result = run(simd, 2, &problem, &schedule([16, 16, 32]), &inputs);
            let expected = expected(&problem, &inputs);
            if format == OutputFormat::F32 {
                assert_close(&result, &expected);
            } else {
                assert_bits(&result, &expected);
            }
        }
    }
}

/// Floats that are not finite reach the rows of the result that they belong to, and no others.
#[test]
fn a_token_that_is_not_finite_spoils_its_row_only() {
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m: 9, n: 20, k: 48 }],
        form: Form::Plain,
        output: OutputFormat::F32,
        tokens: TokenFormat::Bf16,
    });
    let weights = Nvfp4Tensor::quantise(20, 48, &[1.0; 20 * 48]).unwrap();
    for simd in SimdPath::available() {
        let mut values = [1.0; 9 * 48];
        values[4 * 48 + 47] = f32::NAN;
        let inputs = Inputs::GroupedGemm(vec![GroupInputs {
            a: Tokens::Floats(FloatTensor::round(OutputFormat::Bf16, 9, 48, &values)),
            b: weights.clone(),
            b2: None,
        }]);
        let result = run_once(simd, &problem, &inputs);
        for index in 0..9 * 20 {
            assert_eq!(
                result.get(index).is_nan(),
                index / 20 == 4,
                "{simd} element {index}"
            );
        }
    }
}

/// One call; unlike `run`, results may hold NaN, which equals nothing.
fn run_once(simd: SimdPath, problem: &Operation, inputs: &Inputs) -> Output {
    let mut output = Output::poisoned(problem);
    let mut kernel = engine(simd, 2).build(problem, &schedule([16, 16, 32])).unwrap();
    kernel.run(inputs, &mut output).unwrap();
    output
}

#[test]
fn tokens_of_another_format_are_refused() {
    let problem = |tokens| {
        Operation::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: 4, n: 16, k: 32 }],
            form: Form::Plain,
            output: OutputFormat::F32,
            tokens,
        })
    };
    let mut kernel = engine(SimdPath::Portable, 1)
        .build(&problem(TokenFormat::Bf16), &schedule([4, 16, 32]))
        .unwrap();
    let mut output = Output::poisoned(&problem(TokenFormat::Bf16));
    let others = generate(&problem(TokenFormat::F16), InputKind::Wide, 1);
    let error = kernel.run(&others, &mut output).unwrap_err().to_string();
    assert!(error.starts_with("group 0: format of A: F16"), "{error}");
    let error = FloatRows::new(OutputFormat::F32, [2, 16], &[0; 127])
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("bytes of the tokens: 127"), "{error}");
}

#[test]
fn problems_without_work_are_done_at_once() {
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m: 0, n: 64, k: 64 }; 3],
        form: Form::Plain,
        output: OutputFormat::F16,
        tokens: Default::default(),
    });
    let inputs = generate(&problem, InputKind::Wide, 1);
    let result = run(SimdPath::best(), 2, &problem, &schedule([64, 64, 64]), &inputs);
    assert!(result.bytes.is_empty());
}

/// Weights packed beforehand give the same bits as unpacked ones, in every instruction set, with and without swap-AB.
#[test]
fn packed_weights_change_nothing() {
    let groups = vec![
        GemmShape { m: 37, n: 83, k: 720 },
        GemmShape { m: 5, n: 40, k: 96 },
    ];
    for (simd, tokens, swap_ab) in
        paths_and_formats().flat_map(|(simd, tokens)| [false, true].map(|swap_ab| (simd, tokens, swap_ab)))
    {
        let problem = Operation::GroupedGemm(GroupedGemm {
            groups: groups.clone(),
            form: Form::Swiglu,
            output: OutputFormat::F32,
            tokens,
        });
        let generated = generate(&problem, InputKind::Wide, 11);
        let Inputs::GroupedGemm(inputs) = &generated else {
            unreachable!("the problem is a GEMM")
        };
        for setup in [Setup::Once, Setup::PerCall] {
            let schedule = gauntlet_problems::Schedule {
                swap_ab,
                setup,
                split_k: 2,
                ..schedule([24, 32, 160])
            };
            let plain = run(simd, 2, &problem, &schedule, &generated);
            let mut kernel = engine(simd, 2).build(&problem, &schedule).unwrap();
            let pack = |tensor| kernel.pack_weights(tensor).unwrap();
            let packed: Vec<_> = inputs
                .iter()
                .map(|group| (pack(&group.b), pack(group.b2.as_ref().unwrap())))
                .collect();
            let operands: Vec<_> = inputs
                .iter()
                .zip(&packed)
                .map(|(group, (first, second))| GemmOperands {
                    a: (&group.a).into(),
                    b: Weights::Packed(first),
                    b2: Some(Weights::Packed(second)),
                })
                .collect();
            let mut output = Output::poisoned(&problem);
            kernel.run_gemm(&operands, &mut output).unwrap();
            assert!(output == plain, "{simd} {tokens} {swap_ab}");
        }
    }
}

#[test]
fn weights_packed_by_another_plan_are_refused() {
    let problem = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[4, 48, 64]]));
    let generated = generate(&problem, InputKind::Wide, 3);
    let Inputs::GroupedGemm(inputs) = &generated else {
        unreachable!("the problem is a GEMM")
    };
    let engine = engine(SimdPath::Portable, 1);
    let packed = engine
        .build(&problem, &schedule([4, 24, 64]))
        .unwrap()
        .pack_weights(&inputs[0].b)
        .unwrap();
    let operands = [GemmOperands {
        a: (&inputs[0].a).into(),
        b: Weights::Packed(&packed),
        b2: None,
    }];
    let mut output = Output::poisoned(&problem);
    let mut other = engine.build(&problem, &schedule([4, 48, 64])).unwrap();
    let error = other.run_gemm(&operands, &mut output).unwrap_err().to_string();
    assert!(error.starts_with("group 0: packing of weights: "), "{error}");
}

/// Every recommended schedule can be built, for any number of tokens.
#[test]
fn recommended_schedules_are_right() {
    for (m, n, k) in [(1, 48, 32), (3, 500, 2080), (70, 130, 4112)] {
        for (simd, tokens) in paths_and_formats() {
            let gemm = GroupedGemm {
                groups: vec![GemmShape { m, n, k }],
                form: Form::Plain,
                output: OutputFormat::F32,
                tokens,
            };
            let problem = Operation::GroupedGemm(gemm.clone());
            let inputs = generate(&problem, InputKind::Wide, 7);
            let schedule = engine(simd, 3).recommend(&gemm);
            let result = run(simd, 3, &problem, &schedule, &inputs);
            assert_close(&result, &expected(&problem, &inputs));
        }
    }
}
