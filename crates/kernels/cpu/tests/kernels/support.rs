//! Helpers that the tests of both families share: engines, schedules, and comparisons with the oracle.
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use gauntlet_families::operations;
use gauntlet_kernels_cpu::{Engine, EngineOptions, SimdPath};
use gauntlet_problems::{
    Cluster, Epilogue, Inputs, Lookup, Operation, Order, Output, OutputFormat, Roles, Schedule, Setup, Tile,
};
use gauntlet_task::{Coverage, Expected};
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

/// Any instruction set that this processor has.
pub fn any_simd() -> impl Strategy<Value = SimdPath> {
    prop::sample::select(SimdPath::available())
}

/// A schedule of a given tile, with any values of the other words.
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

/// Builds a kernel, runs it twice, checks that both runs give the same bits, and returns the output.
pub fn run(
    simd: SimdPath,
    threads: usize,
    problem: &Operation,
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
pub fn expected(problem: &Operation, inputs: &Inputs) -> Expected {
    operations::expected(problem, inputs, Coverage::Full).unwrap()
}

/// Each expected value with its place in the output, counted over all parts.
pub fn elements(expected: &Expected) -> impl Iterator<Item = (usize, f64)> + '_ {
    let parts = expected.parts.iter();
    let starts: Vec<usize> = parts
        .scan(0, |start, part| {
            let own = *start;
            *start += part.rows * part.columns;
            Some(own)
        })
        .collect();
    let values = expected.values();
    values.map(move |(part, index, value)| (starts[part] + index, value))
}

/// Checks that each element of `output` is the expected value rounded once.
pub fn assert_bits(output: &Output, expected: &Expected) {
    for (index, value) in elements(expected) {
        assert_eq!(output.get(index), output.format.round(value), "element {index}");
    }
}

/// Checks that one rounding to the output's format explains the error of `output`. Each element may be off by half a unit
/// in the last place; the norm of all error beyond that must stay below 3·10⁻⁶ of the norm of the expected values, which
/// is the error of sums in f32.
pub fn assert_close(output: &Output, expected: &Expected) {
    // Unit roundoff, and half the smallest subnormal.
    let (roundoff, smallest) = match output.format {
        OutputFormat::F16 => (2.0_f64.powi(-11), 2.0_f64.powi(-25)),
        OutputFormat::Bf16 => (2.0_f64.powi(-8), 2.0_f64.powi(-134)),
        OutputFormat::F32 => (2.0_f64.powi(-24), 2.0_f64.powi(-150)),
    };
    let (mut error, mut power) = (0.0, 0.0);
    for (index, value) in elements(expected) {
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
