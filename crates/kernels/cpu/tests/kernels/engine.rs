//! The engine's reports, its refusals, and its behaviour under stress.

use std::time::Duration;

use crate::support::{assert_bits, engine, expected, schedule};
use gauntlet_families::operations::generate;
use gauntlet_kernels_cpu::{Engine, EngineOptions, SimdPath};
use gauntlet_problems::{
    Attention, AttentionFormat, Cluster, Form, GroupedGemm, Operation, Output, Roles, Schedule, Setup,
};
use gauntlet_task::InputKind;

fn gemm(groups: &[[usize; 3]]) -> Operation {
    Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups.iter().copied()))
}

fn attention(head_size: usize) -> Operation {
    Operation::Attention(Attention::new(AttentionFormat::F16, [[8, 8]], [3, 1], head_size))
}

fn refusal(problem: &Operation, schedule: &Schedule) -> String {
    engine(SimdPath::Portable, 1)
        .build(problem, schedule)
        .unwrap_err()
        .to_string()
}

#[test]
fn refusals_name_the_word_and_the_remedy() {
    let problem = gemm(&[[64, 64, 64]]);
    let good = schedule([64, 64, 64]);
    let with = |change: fn(&mut Schedule)| {
        let mut schedule = good.clone();
        change(&mut schedule);
        refusal(&problem, &schedule)
    };
    assert_eq!(
        with(|schedule| schedule.stages = 0),
        "stages = 0: must be at least 1"
    );
    assert_eq!(
        with(|schedule| schedule.split_k = 0),
        "split-k = 0: must be at least 1"
    );
    assert_eq!(
        with(|schedule| schedule.tile.m = 0),
        "tile.m = 0: must be at least 1"
    );
    assert_eq!(
        with(|schedule| schedule.tile.k = 24),
        "tile.k = 24: on the CPU a stage holds whole scale blocks of 16 values; try 32"
    );
    assert_eq!(
        with(|schedule| schedule.cluster = Cluster { m: 2, n: 1 }),
        "cluster = [2, 1]: CPU threads share no loads; use [1, 1]"
    );
    assert_eq!(
        with(|schedule| schedule.roles = Roles::Specialised),
        "roles = specialised: needs at least 2 threads, one of them to load, and the engine has 1; use roles = \
         unified or more threads"
    );
    assert_eq!(
        refusal(&gemm(&[[64, 64, 64], [64, 64, 40]]), &good),
        "group 1: K = 40 is not a multiple of 16, the values that share a scale; try 32 or 48"
    );
    assert_eq!(
        refusal(&attention(64), &schedule([64, 64, 32])),
        "tile.k = 32: for attention tile.k is the head size; use 64"
    );
    assert_eq!(
        refusal(&attention(20), &schedule([64, 64, 20])),
        "head_size = 20: the CPU computes multiples of 8 from 8 to 256"
    );
}

#[test]
fn absurd_sizes_are_refused_not_attempted() {
    let tiny = schedule([1, 1, 16]);
    assert!(
        refusal(&gemm(&[[1 << 20, 1 << 20, 16]]), &tiny).contains("over the limit of 16777216; use a larger")
    );
    assert!(refusal(&gemm(&[[usize::MAX, 16, 16]]), &tiny).contains("more than 2⁶⁰"));
    let huge = schedule([usize::MAX, usize::MAX, usize::MAX - 15]);
    // The largest valid problems: each size in turn nearly at the limit, then all equal.
    for sizes in [
        [1 << 54, 1, 16],
        [1, 1 << 54, 16],
        [1, 1, 1 << 58],
        [1 << 19, 1 << 19, 1 << 20],
    ] {
        let refusal = refusal(&gemm(&[sizes]), &huge);
        assert!(
            refusal.contains("the workspace needs") || refusal.contains("use a larger tile"),
            "{sizes:?}: {refusal}"
        );
    }
    let deep = Schedule {
        stages: usize::MAX,
        ..schedule([64, 64, 64])
    };
    assert!(refusal(&attention(64), &deep).contains("the workspace needs"));
    assert!(refusal(&gemm(&[[64, 64, 64]]), &deep).contains("the workspace needs"));
}

#[test]
fn operands_of_another_problem_are_refused() {
    let engine = engine(SimdPath::Portable, 2);
    let problem = gemm(&[[8, 16, 32]]);
    let mut kernel = engine.build(&problem, &schedule([8, 8, 32])).unwrap();
    let other = gemm(&[[8, 16, 48]]);
    let inputs = generate(&other, InputKind::Wide, 1);
    let error = kernel.run(&inputs, &mut Output::poisoned(&problem)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "group 0: shape of A: [8, 48], but the kernel was built for [8, 32]; build it for this problem"
    );
    let inputs = generate(&problem, InputKind::Wide, 1);
    assert!(
        kernel
            .run(&inputs, &mut Output::poisoned(&gemm(&[[8, 8, 32]])))
            .is_err()
    );
    assert!(
        kernel
            .run(
                &generate(&attention(16), InputKind::Wide, 1),
                &mut Output::poisoned(&problem)
            )
            .is_err()
    );
}

#[test]
fn resources_follow_the_schedule() {
    let engine = engine(SimdPath::Portable, 8);
    let problem = gemm(&[[64, 256, 512]]);
    let unified = *engine
        .build(&problem, &schedule([64, 64, 128]))
        .unwrap()
        .resources();
    assert_eq!((unified.threads, unified.producers, unified.tiles), (8, 0, 4));
    // Two bytes a value, and for each 16 of them two words.
    assert_eq!(unified.panel_bytes_per_thread, 2 * 64 * 128 / 16 * (2 * 16 + 8));
    let split = Schedule {
        stages: 4,
        roles: Roles::Specialised,
        split_k: 2,
        ..schedule([64, 64, 128])
    };
    let split = *engine.build(&problem, &split).unwrap().resources();
    assert_eq!((split.threads, split.producers, split.tiles), (8, 2, 8));
    assert_eq!(split.panel_bytes_per_thread, 2 * unified.panel_bytes_per_thread);
    assert_eq!(
        split.register_rows * split.register_columns,
        split.accumulator_registers
    );
}

#[test]
fn phases_add_up_to_the_threads_time() {
    let engine = engine(SimdPath::best(), 2);
    let problem = gemm(&[[96, 512, 512]]);
    let inputs = generate(&problem, InputKind::Wide, 2);
    for roles in [Roles::Unified, Roles::Specialised] {
        let schedule = Schedule {
            roles,
            setup: Setup::PerCall,
            ..schedule([32, 64, 128])
        };
        let mut kernel = engine.build(&problem, &schedule).unwrap();
        let times = kernel
            .run_traced(&inputs, &mut Output::poisoned(&problem))
            .unwrap();
        let phases = times.phases.unwrap();
        let sum = phases.load + phases.multiply + phases.epilogue + phases.wait;
        assert_eq!(sum, times.kernel * 2);
        let parts = [phases.setup, phases.load, phases.multiply, phases.epilogue];
        assert!(parts.iter().all(|part| *part > Duration::ZERO), "{phases:?}");
    }
}

#[test]
fn one_engine_serves_several_callers() {
    let engine = engine(SimdPath::best(), 3);
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let engine = &engine;
            scope.spawn(move || {
                let problem = gemm(&[[17 + caller, 48, 64], [5, 80, 96]]);
                let inputs = generate(&problem, InputKind::Competition, caller as u64);
                let expected = expected(&problem, &inputs);
                let roles = if caller == 0 {
                    Roles::Specialised
                } else {
                    Roles::Unified
                };
                let mut kernel = engine
                    .build(
                        &problem,
                        &Schedule {
                            roles,
                            ..schedule([16, 16, 32])
                        },
                    )
                    .unwrap();
                for _ in 0..100 {
                    let mut output = Output::poisoned(&problem);
                    kernel.run(&inputs, &mut output).unwrap();
                    assert_bits(&output, &expected);
                }
            });
        }
    });
}

#[test]
fn a_kernel_outlives_its_engine() {
    let problem = gemm(&[[8, 16, 32]]);
    let inputs = generate(&problem, InputKind::Competition, 1);
    let engine = Engine::new(EngineOptions::default()).unwrap();
    assert_eq!(engine.simd(), SimdPath::best());
    let mut kernel = engine.build(&problem, &schedule([8, 8, 32])).unwrap();
    drop(engine);
    let mut output = Output::poisoned(&problem);
    kernel.run(&inputs, &mut output).unwrap();
    assert_bits(&output, &expected(&problem, &inputs));
    let error = Engine::new(EngineOptions {
        simd: None,
        threads: Some(0),
        ..EngineOptions::default()
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "threads = 0: an engine needs at least 1 thread"
    );
}
