//! Grouped GEMM against the f64 oracle: every instruction set, every word of the schedule, every kind of input.

use crate::support::{
    any_output, any_schedule, any_simd, assert_bits, assert_close, engine, expected, run, schedule,
};
use gauntlet_families::operations::generate;
use gauntlet_formats::Nvfp4Tensor;
use gauntlet_kernels_cpu::{GemmOperands, SimdPath, Weights};
use gauntlet_operations::{
    Form, GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, OutputFormat, Roles, Setup, Tile,
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_computes_any_problem(
        groups in prop::collection::vec(any_group(), 1..4),
        dual in any::<bool>(),
        output in any_output(),
        kind in prop::sample::select(InputKind::ALL.to_vec()),
        schedule in any_schedule(any_tile()),
        simd in any_simd(),
        threads in 2..5_usize,
        seed in any::<u64>(),
    ) {
        let form = if dual { Form::Swiglu } else { Form::Plain };
        let problem = Operation::GroupedGemm(GroupedGemm { groups, form, output, tokens: Default::default() });
        let inputs = generate(&problem, kind, seed);
        let result = run(simd, threads, &problem, &schedule, &inputs);
        let expected = expected(&problem, &inputs);
        if kind == InputKind::Competition && !dual {
            assert_bits(&result, &expected);
        }
        assert_close(&result, &expected);
    }
}

/// The bits do not depend on the number of threads.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let groups = vec![
        GemmShape { m: 45, n: 70, k: 336 },
        GemmShape { m: 9, n: 128, k: 160 },
    ];
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups,
        form: Form::Swiglu,
        output: OutputFormat::F32,
        tokens: Default::default(),
    });
    let inputs = generate(&problem, InputKind::Wide, 5);
    for simd in SimdPath::available() {
        let schedule = gauntlet_operations::Schedule {
            split_k: 3,
            ..schedule([16, 32, 64])
        };
        let one = run(simd, 1, &problem, &schedule, &inputs);
        for threads in 2..6 {
            assert!(run(simd, threads, &problem, &schedule, &inputs) == one);
            let specialised = gauntlet_operations::Schedule {
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
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups,
        form: Form::Swiglu,
        output: OutputFormat::F32,
        tokens: Default::default(),
    });
    let generated = generate(&problem, InputKind::Wide, 11);
    let Inputs::GroupedGemm(inputs) = &generated else {
        unreachable!("the problem is a GEMM")
    };
    for (simd, swap_ab) in SimdPath::available()
        .into_iter()
        .flat_map(|simd| [(simd, false), (simd, true)])
    {
        for setup in [Setup::Once, Setup::PerCall] {
            let schedule = gauntlet_operations::Schedule {
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
                    a: group.a.nvfp4().unwrap(),
                    b: Weights::Packed(first),
                    b2: Some(Weights::Packed(second)),
                })
                .collect();
            let mut output = gauntlet_operations::Output::poisoned(&problem);
            kernel.run_gemm(&operands, &mut output).unwrap();
            assert!(output == plain, "{simd} {swap_ab}");
        }
    }
}

#[test]
fn weights_packed_by_another_plan_are_refused() {
    let problem = Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m: 4, n: 48, k: 64 }],
        form: Form::Plain,
        output: OutputFormat::F16,
        tokens: Default::default(),
    });
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
        a: inputs[0].a.nvfp4().unwrap(),
        b: Weights::Packed(&packed),
        b2: None,
    }];
    let mut output = gauntlet_operations::Output::poisoned(&problem);
    let mut other = engine.build(&problem, &schedule([4, 48, 64])).unwrap();
    let error = other.run_gemm(&operands, &mut output).unwrap_err().to_string();
    assert!(error.starts_with("group 0: packing of weights: "), "{error}");
}

/// Every recommended schedule can be built, for any number of tokens.
#[test]
fn recommended_schedules_are_right() {
    for (m, n, k) in [(1, 48, 32), (3, 500, 2080), (70, 130, 4112)] {
        let gemm = GroupedGemm {
            groups: vec![GemmShape { m, n, k }],
            form: Form::Plain,
            output: OutputFormat::F32,
            tokens: Default::default(),
        };
        let problem = Operation::GroupedGemm(gemm.clone());
        let inputs = generate(&problem, InputKind::Wide, 7);
        for simd in SimdPath::available() {
            let schedule = engine(simd, 3).recommend(&gemm);
            let result = run(simd, 3, &problem, &schedule, &inputs);
            assert_close(&result, &expected(&problem, &inputs));
        }
    }
}
