//! Exact counts: bytes, operations, tiles, steps.

mod occupancy;

use gauntlet_device::Arch;
use gauntlet_problems::Schedule;
use schemars::JsonSchema;
use serde::Serialize;

pub use occupancy::{Limit, Occupancy};

pub use crate::gpu::Traffic;

use crate::Problem;

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
        let classes = problem.model().classes(schedule, arch);
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
    problem.model().bytes()
}

/// Floating-point operations of the products; a multiply-add counts as two. Keys that a causal mask hides do not count.
pub fn flops(problem: &Problem) -> f64 {
    problem.operation().flops() as f64
}

fn useful_rows(problem: &Problem, schedule: &Schedule, arch: Arch) -> f64 {
    let (step, rows) = problem.model().rows(schedule, arch);
    let padded: usize = rows.iter().map(|rows| rows.next_multiple_of(step)).sum();
    if padded == 0 {
        1.0
    } else {
        rows.iter().sum::<usize>() as f64 / padded as f64
    }
}
