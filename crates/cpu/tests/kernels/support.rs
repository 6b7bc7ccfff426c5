//! What the tests of both families share: engines, schedules, and the judgement of a result.
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use gauntlet_cpu::{Engine, EngineOptions, SimdPath};
use gauntlet_problem::{Coverage, Expected, Inputs, Oracle, Output, OutputFormat, Problem};
use gauntlet_schedule::{Cluster, Epilogue, Lookup, Order, Roles, Schedule, Setup, Tile};
use proptest::prelude::*;

/// An engine with its own small pool.
pub fn engine(simd: SimdPath, threads: usize) -> Engine {
    Engine::new(EngineOptions {
        simd: Some(simd),
        threads: Some(threads),
        ..EngineOptions::default()
    })
    .unwrap()
}

/// One of this processor's instruction sets.
pub fn any_simd() -> impl Strategy<Value = SimdPath> {
    prop::sample::select(SimdPath::available())
}

/// A schedule with any value of each word but the tile.
pub fn any_schedule(tile: impl Strategy<Value = Tile>) -> impl Strategy<Value = Schedule> {
    (
        tile,
        1..4_usize,
        prop::sample::select(vec![Epilogue::Direct, Epilogue::Staged]),
        prop::sample::select(vec![Roles::Unified, Roles::Specialised]),
        prop::sample::select(vec![Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic]),
        prop::sample::select(vec![Lookup::Linear, Lookup::Precomputed]),
        prop::sample::select(vec![Setup::PerCall, Setup::Once]),
        any::<bool>(),
        prop::sample::select(vec![1, 1, 2, 3, 7]),
    )
        .prop_map(
            |(tile, stages, epilogue, roles, order, lookup, setup, swap_ab, split_k)| Schedule {
                tile,
                stages,
                epilogue,
                roles,
                order,
                lookup,
                setup,
                swap_ab,
                split_k,
                cluster: Cluster { m: 1, n: 1 },
                ..Schedule::baseline()
            },
        )
}

/// A plain schedule of `tile`.
pub fn schedule(tile: [usize; 3]) -> Schedule {
    Schedule {
        tile: tile.into(),
        stages: 2,
        epilogue: Epilogue::Direct,
        roles: Roles::Unified,
        order: Order::Dynamic,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: false,
        split_k: 1,
        cluster: Cluster { m: 1, n: 1 },
        ..Schedule::baseline()
    }
}

/// Any output format.
pub fn any_output() -> impl Strategy<Value = OutputFormat> {
    prop::sample::select(vec![OutputFormat::F16, OutputFormat::Bf16, OutputFormat::F32])
}

/// Runs `problem` twice under `schedule` on a fresh engine, sees that both runs give the same bits, and returns
/// them.
pub fn run(
    simd: SimdPath,
    threads: usize,
    problem: &Problem,
    schedule: &Schedule,
    inputs: &Inputs,
) -> Output {
    static ENGINES: LazyLock<Mutex<HashMap<(SimdPath, usize), Engine>>> = LazyLock::new(Mutex::default);
    let mut engines = ENGINES.lock().unwrap();
    let engine = engines
        .entry((simd, threads))
        .or_insert_with(|| engine(simd, threads));
    let mut kernel = engine.build(problem, schedule).unwrap();
    drop(engines);
    let mut first = Output::poisoned(problem);
    let times = kernel.run(inputs, &mut first).unwrap();
    assert!(times.phases.is_none());
    let mut second = Output::poisoned(problem);
    let times = kernel.run_traced(inputs, &mut second).unwrap();
    assert!(times.phases.is_some());
    assert!(first == second, "two runs differ");
    first
}

/// The whole result in f64.
pub fn expected(problem: &Problem, inputs: &Inputs) -> Expected {
    Oracle::compute(problem, inputs, Coverage::Full).unwrap()
}

/// Whether `output` is what rounding the expected values once gives.
pub fn assert_bits(output: &Output, expected: &Expected) {
    for (index, value) in expected.values() {
        assert_eq!(output.get(index), output.format.round(value), "element {index}");
    }
}

/// Whether the error of `output` is what one rounding to its format explains: of each element half a unit in the
/// last place is allowed, and what goes beyond it must be under 3·10⁻⁶ of the whole, the error of sums in f32.
pub fn assert_close(output: &Output, expected: &Expected) {
    // Unit roundoff, and half the smallest subnormal.
    let (roundoff, smallest) = match output.format {
        OutputFormat::F16 => (2.0_f64.powi(-11), 2.0_f64.powi(-25)),
        OutputFormat::Bf16 => (2.0_f64.powi(-8), 2.0_f64.powi(-134)),
        OutputFormat::F32 => (2.0_f64.powi(-24), 2.0_f64.powi(-150)),
    };
    let (mut error, mut power) = (0.0, 0.0);
    for (index, value) in expected.values() {
        let difference = (f64::from(output.get(index)) - value).abs();
        assert!(
            !difference.is_nan(),
            "element {index} is {} for {value}",
            output.get(index)
        );
        error += (difference - smallest.max(roundoff * value.abs()))
            .max(0.0)
            .powi(2);
        power += value * value;
    }
    assert!(
        error.sqrt() <= 3e-6 * power.sqrt(),
        "{:e} beyond rounding",
        (error / power).sqrt()
    );
}
