//! The cost of writing results.

use gauntlet_device::Arch;

use super::{Costs, Setting, Transfer};
use crate::gpu::assumed;
use crate::gpu::work::Kind;

/// Bytes of a sum.
const SUM: f64 = 4.0;
/// Bytes of an fp16 or bf16 value.
const HALF: f64 = 2.0;

/// The results of a tile.
#[derive(Debug, Clone, Copy)]
pub struct Results {
    /// Columns of the tile's results.
    pub columns: f64,
    /// Sums from which one element of the result is made.
    pub matrices: f64,
    /// Exponentials for each element.
    pub exponentials: f64,
    /// Whether the parts of a split sum are blocks of one cluster, which merge over its shared memory.
    pub merge_in_cluster: bool,
}

/// The costs of storing, including reduction; all other fields are 0.
pub(super) fn of(kind: &Kind, setting: &Setting) -> Costs {
    if setting.ideal.epilogue {
        return Costs::default();
    }
    let (schedule, machine) = (setting.schedule, setting.machine);
    let pair = setting.bundle.pair as f64;
    let Results {
        columns,
        matrices,
        exponentials,
        merge_in_cluster,
    } = setting.problem.model().results(setting);
    let sums = schedule.tile.m as f64 / pair * columns;
    let results = kind.rows / pair * kind.columns;
    let in_cluster = schedule.split_k > 1 && merge_in_cluster;
    let split = schedule.split_k > 1 && !in_cluster;
    let results = if in_cluster {
        results / schedule.split_k as f64
    } else {
        results
    };
    let element = if split {
        SUM * matrices
    } else {
        setting.problem.operation().output_format().bytes() as f64
    };
    let bytes = results * element;
    let activation = sums * exponentials / machine.exponential_rate;
    let tensor_memory = if machine.arch == Arch::Sm100a {
        sums * matrices * SUM / machine.tensor_memory_rate
    } else {
        0.0
    };
    // Partial sums are read again soon, and stay in the cache.
    let memory = if setting.ideal.contention || split {
        0.0
    } else {
        bytes
    };
    let cached = if setting.ideal.contention { 0.0 } else { bytes };
    let leaving = |rate: f64| Transfer {
        issue: bytes / rate,
        occupation: bytes / rate,
        arrival: 0.0,
        latency: machine.load_latency[1],
        cached,
        memory,
        halves: 0.0,
    };
    let halves = if setting.ideal.contention || !in_halves(setting, element) {
        0.0
    } else {
        bytes
    };
    Costs {
        take: tensor_memory + activation,
        store: Transfer {
            halves,
            ..leaving(direct_rate(setting, element))
        },
        stage: bytes / machine.shared_rate,
        staged_bytes: bytes,
        bulk_store: leaving(machine.row_rate),
        reduce: if split {
            reduction(results, results * matrices, setting)
        } else if in_cluster {
            merging(sums, setting)
        } else {
            0.0
        },
        ..Costs::default()
    }
}

/// Bytes per cycle that threads write from accumulators. With swapped operands, the lanes of tensor memory are
/// neighbours in a row of the result; in all other layouts an instruction is assumed to write half sectors.
fn direct_rate(setting: &Setting, element: f64) -> f64 {
    if setting.schedule.swap_ab && setting.machine.arch == Arch::Sm100a {
        assumed::WHOLE_SECTORS
    } else if in_halves(setting, element) {
        setting.machine.half_sectors
    } else {
        assumed::HALF_SECTORS
    }
}

/// Whether threads write two-byte values in half sectors, the case that was measured.
fn in_halves(setting: &Setting, element: f64) -> bool {
    element <= HALF && !(setting.schedule.swap_ab && setting.machine.arch == Arch::Sm100a)
}

/// Each block of a cluster gets its share of the rows of all others' sums, and adds them in a fixed order.
fn merging(sums: f64, setting: &Setting) -> f64 {
    let others = 1.0 - 1.0 / setting.schedule.split_k as f64;
    setting.machine.cluster_barrier + sums * others * SUM / assumed::CLUSTER_RATE
}

/// Each part waits for the others at a counter, adds up its share of the tile in a fixed order, and writes it.
fn reduction(results: f64, sums: f64, setting: &Setting) -> f64 {
    let machine = setting.machine;
    let written = results / setting.schedule.split_k as f64
        * setting.problem.operation().output_format().bytes() as f64;
    machine.counter
        + machine.load_latency[1]
        + sums * SUM / assumed::CACHE_RATE
        + written / assumed::WHOLE_SECTORS
}
