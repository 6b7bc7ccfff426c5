//! Exact counts: bytes, operations, tiles, steps.

mod occupancy;

use gauntlet_device::Arch;
use gauntlet_operations::Schedule;
use gauntlet_operations::resources::{head_sets, weights};
use gauntlet_operations::{Attention, GroupedGemm, Operation, Sequence};
use schemars::JsonSchema;
use serde::Serialize;

pub use occupancy::{Limit, Occupancy};

pub use crate::gpu::Traffic;

use crate::Problem;
use crate::tiles;

/// Bytes per NVFP4 value: half a byte, and one scale byte for each 16 values.
const NVFP4_BYTES: f64 = 0.5 + 1.0 / 16.0;

/// Counts of a problem under a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Units of work; the parts of a split K count separately.
    pub tiles: usize,
    /// Rounds needed to give every tile one of `processors` processors.
    pub waves: usize,
    /// The largest number of steps along the summed dimension of any tile.
    pub steps: usize,
    /// Tokens (queries for attention) divided by the rows computed, including the padding of each group's last tile.
    pub useful_rows: f64,
    /// Operations including padding, divided by [`flops`].
    pub padding: f64,
}

impl Counts {
    /// Counts for `processors` tiles at the same time.
    pub fn of(problem: &Problem, schedule: &Schedule, arch: Arch, processors: usize) -> Self {
        let classes = tiles::classes(problem, schedule, arch);
        let tiles: usize = classes.iter().map(|class| class.count).sum();
        let padded: f64 = classes.iter().map(|class| class.count as f64 * class.flops).sum();
        let useful = flops(problem);
        Self {
            tiles,
            waves: tiles.div_ceil(processors.max(1)),
            steps: classes.iter().map(|class| class.steps).max().unwrap_or(0),
            useful_rows: useful_rows(problem, schedule, arch),
            padding: if useful > 0.0 { padded / useful } else { 1.0 },
        }
    }
}

/// Bytes that must move if every operand is read once and every result written once. Groups without rows move nothing;
/// attention's scales are left out (4 bytes per head).
pub fn bytes(problem: &Problem) -> f64 {
    let output = problem.operation().output_format().bytes() as f64;
    match problem.operation() {
        Operation::GroupedGemm(gemm) => gemm_bytes(gemm, output),
        Operation::Attention(attention) => attention_bytes(attention, output),
    }
}

/// Floating-point operations of the products; a multiply-add counts as two. Keys that a causal mask hides do not count.
pub fn flops(problem: &Problem) -> f64 {
    match problem.operation() {
        Operation::GroupedGemm(gemm) => {
            let products = gemm
                .groups
                .iter()
                .map(|shape| shape.m as f64 * shape.n as f64 * shape.k as f64);
            2.0 * weights(gemm) as f64 * products.sum::<f64>()
        }
        Operation::Attention(attention) => {
            let pairs: f64 = attention
                .sequences
                .iter()
                .map(|sequence| visible_pairs(attention, *sequence))
                .sum();
            4.0 * attention.head_size as f64 * attention.heads as f64 * pairs
        }
    }
}

/// `f32` partial results written and read again, in bytes, when the summed dimension is split.
pub fn partial_bytes(problem: &Problem, schedule: &Schedule) -> f64 {
    if schedule.split_k == 1 {
        return 0.0;
    }
    let results: f64 = problem
        .operation()
        .parts()
        .iter()
        .map(|part| part.rows as f64 * part.columns as f64)
        .sum();
    let sets = match problem.operation() {
        Operation::GroupedGemm(gemm) => weights(gemm) as f64,
        Operation::Attention(_) => 1.0,
    };
    2.0 * 4.0 * sets * results * schedule.split_k as f64
}

fn gemm_bytes(gemm: &GroupedGemm, output: f64) -> f64 {
    gemm.groups
        .iter()
        .filter(|shape| shape.m > 0)
        .map(|shape| {
            let (m, n, k) = (shape.m as f64, shape.n as f64, shape.k as f64);
            (m + weights(gemm) as f64 * n) * k * NVFP4_BYTES + m * n * output
        })
        .sum()
}

fn attention_bytes(attention: &Attention, output: f64) -> f64 {
    let element = attention.format.bytes() as f64;
    let heads = attention.heads as f64;
    let positions: f64 = attention
        .sequences
        .iter()
        .map(|sequence| {
            let (queries, keys) = (sequence.queries as f64, sequence.keys as f64);
            queries * heads * (element + output) + 2.0 * keys * attention.kv_heads as f64 * element
        })
        .sum();
    positions * attention.head_size as f64
}

/// The number of pairs of a query and a key that it sees.
fn visible_pairs(attention: &Attention, sequence: Sequence) -> f64 {
    let (queries, keys) = (sequence.queries as f64, sequence.keys as f64);
    if !attention.causal {
        return queries * keys;
    }
    // Query i of the last min(queries, keys) queries sees keys − queries + i + 1 keys; earlier ones see none.
    let seeing = queries.min(keys);
    seeing * keys - seeing * (seeing - 1.0) / 2.0
}

fn useful_rows(problem: &Problem, schedule: &Schedule, arch: Arch) -> f64 {
    let (step, rows): (usize, Vec<usize>) = match problem.operation() {
        Operation::GroupedGemm(gemm) => {
            let step = if schedule.swap_ab {
                schedule.tile.n
            } else {
                schedule.tile.m
            };
            (step, gemm.groups.iter().map(|shape| shape.m).collect())
        }
        Operation::Attention(attention) => (
            schedule.tile.m,
            attention
                .sequences
                .iter()
                .map(|sequence| sequence.queries * head_sets(schedule, attention, arch).heads)
                .collect(),
        ),
    };
    let padded: usize = rows.iter().map(|rows| rows.next_multiple_of(step)).sum();
    if padded == 0 {
        1.0
    } else {
        rows.iter().sum::<usize>() as f64 / padded as f64
    }
}
