//! Grouped GEMM against the f64 oracle: every instruction set, every word of the schedule, every kind of input.

use crate::support::{
    any_output, any_schedule, any_simd, assert_bits, assert_close, expected, run, schedule,
};
use gauntlet_cpu::SimdPath;
use gauntlet_formats::Nvfp4Tensor;
use gauntlet_problem::{Form, GemmShape, GroupInputs, GroupedGemm, InputKind, Inputs, OutputFormat, Problem};
use gauntlet_schedule::{Roles, Tile};
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
        let problem = Problem::GroupedGemm(GroupedGemm { groups, form, output });
        let inputs = Inputs::generate(&problem, kind, seed);
        let result = run(simd, threads, &problem, &schedule, &inputs);
        let expected = expected(&problem, &inputs);
        if kind == InputKind::Competition && !dual {
            assert_bits(&result, &expected);
        }
        assert_close(&result, &expected);
    }
}

/// The same bits however many threads share the tiles.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let groups = vec![
        GemmShape { m: 45, n: 70, k: 336 },
        GemmShape { m: 9, n: 128, k: 160 },
    ];
    let problem = Problem::GroupedGemm(GroupedGemm {
        groups,
        form: Form::Swiglu,
        output: OutputFormat::F32,
    });
    let inputs = Inputs::generate(&problem, InputKind::Wide, 5);
    for simd in SimdPath::available() {
        let schedule = gauntlet_schedule::Schedule {
            split_k: 3,
            ..schedule([16, 32, 64])
        };
        let one = run(simd, 1, &problem, &schedule, &inputs);
        for threads in 2..6 {
            assert!(run(simd, threads, &problem, &schedule, &inputs) == one);
            let specialised = gauntlet_schedule::Schedule {
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
    let problem = Problem::GroupedGemm(GroupedGemm {
        groups: vec![shape],
        form: Form::Plain,
        output: OutputFormat::F32,
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
                a: tensor(3, 0x77, 0x7E, left),
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
    let problem = Problem::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape { m: 0, n: 64, k: 64 }; 3],
        form: Form::Plain,
        output: OutputFormat::F16,
    });
    let inputs = Inputs::generate(&problem, InputKind::Wide, 1);
    let result = run(SimdPath::best(), 2, &problem, &schedule([64, 64, 64]), &inputs);
    assert!(result.bytes.is_empty());
}
