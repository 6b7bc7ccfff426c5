//! The cost of set-up in a call that keeps nothing from the call before.

use std::time::Instant;

use gauntlet_problems::{Form, GemmShape, GroupedGemm, OutputFormat};
use gauntlet_problems::{Lookup, Order, Schedule, Tile};

use super::bench::Bench;
use super::{CalibrationError, CalibrationFigure, cost};
use crate::family::{Plan, Setting};
use crate::gemm::GemmPlan;
use crate::memory::AlignedBuffer;
use crate::order::Assignment;

/// Sizes of buffers: allocators treat small and large ones differently.
const BUFFERS_KIB: [usize; 6] = [16, 128, 512, 2048, 8192, 32768];

/// Each measured buffer comes with a second one, `REST` times smaller, because in a call the largest buffer is most of
/// the memory. An allocator keeps about twice the size of a freed buffer for reuse, so the next call finds both again.
const REST: usize = 4;

/// Groups of the planned problem.
const GROUPS: usize = 32;

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let mut figures = Vec::new();
    for size in BUFFERS_KIB {
        let bytes = size << 10;
        let seconds = bench.caller(|| allocate(bytes))?;
        figures.push(cost(format!("setup.buffer.{size}KiB"), "byte", seconds));
    }
    for (name, order) in [("static", Order::Static), ("sorted", Order::Sorted)] {
        figures.push(cost(
            format!("setup.tile.{name}"),
            "tile",
            bench.caller(|| plan(bench, order))?,
        ));
    }
    figures.push(cost(
        "lookup.group",
        "group passed",
        bench.caller(|| lookup(bench))?,
    ));
    Ok(figures)
}

/// Seconds per byte to allocate a buffer of zeros and a smaller one, and to free them.
fn allocate(bytes: usize) -> Result<f64, CalibrationError> {
    let values = bytes / size_of::<f32>();
    let start = Instant::now();
    let buffers = [
        AlignedBuffer::zeroed(values)?,
        AlignedBuffer::zeroed(values / REST)?,
    ];
    drop(std::hint::black_box(buffers));
    Ok(start.elapsed().as_secs_f64() / (bytes + bytes / REST) as f64)
}

/// Seconds per tile to plan a problem and assign its tiles to threads.
fn plan(bench: &Bench, order: Order) -> Result<f64, CalibrationError> {
    let start = Instant::now();
    let plan = planned(bench, order)?;
    let assignment = Assignment::new(order, &plan.costs(), bench.pool.threads());
    std::hint::black_box(&assignment);
    let tiles = plan.tiles() as f64;
    drop((plan, assignment));
    Ok(start.elapsed().as_secs_f64() / tiles)
}

/// Seconds per group that the lookup skips on the way to a tile's group.
fn lookup(bench: &Bench) -> Result<f64, CalibrationError> {
    let plan = planned(bench, Order::Static)?;
    let tiles = plan.tiles();
    let start = Instant::now();
    for tile in 0..tiles {
        std::hint::black_box(plan.find(std::hint::black_box(tile)));
    }
    // On average half of the groups are skipped.
    Ok(start.elapsed().as_secs_f64() / (tiles * GROUPS / 2) as f64)
}

fn planned(bench: &Bench, order: Order) -> Result<GemmPlan, CalibrationError> {
    let shape = GemmShape {
        m: 64,
        n: 512,
        k: 512,
    };
    let problem = GroupedGemm {
        groups: vec![shape; GROUPS],
        form: Form::Plain,
        output: OutputFormat::F16,
        tokens: Default::default(),
    };
    let schedule = Schedule {
        tile: Tile { m: 32, n: 64, k: 256 },
        order,
        lookup: Lookup::Linear,
        ..Schedule::baseline()
    };
    let setting = Setting {
        instructions: bench.instructions,
        schedule: &schedule,
    };
    Ok(GemmPlan::new(&problem, &setting)?)
}
