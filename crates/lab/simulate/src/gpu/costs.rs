//! The cost of each operation for a tile of one kind, in cycles and bytes.

mod epilogue;
mod operands;
mod products;

use gauntlet_problems::{Lookup, Maps, Order, Schedule, Setup};

use super::assumed;
use super::ideal::Ideal;
use super::machine::Machine;
use super::work::{Bundle, Kind};
use crate::Problem;

pub use epilogue::Results;
pub use operands::{Conversion, Read};
use operands::{shared_bytes, transfers};
pub use products::Shape;

/// The setting in which a schedule runs.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The device.
    pub machine: &'a Machine,
    /// How blocks are grouped.
    pub bundle: Bundle,
    /// The mechanisms that cost no time.
    pub ideal: Ideal,
}

impl Setting<'_> {
    /// The number of bulk copies that move this many bytes.
    pub fn boxes(&self, bytes: f64) -> f64 {
        (bytes / self.machine.box_bytes).ceil().max(1.0)
    }
}

/// One step of a tile on one multiprocessor.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The reads of both operands.
    pub operands: [Read; 2],
    /// The reads of a tile's queries.
    pub queries: Option<Read>,
    /// What is converted.
    pub conversion: Conversion,
    /// The products of a GEMM, of scores, and of values. A tile's padding is multiplied too.
    pub products: [Option<Shape>; 3],
    /// Cycles of values by fused multiply-adds, if they are multiplied in this way.
    pub scalar: f64,
    /// Cycles of exponentials and the related work.
    pub softmax: f64,
    /// Bytes of scores into and out of shared memory, and of weights into it.
    pub scores_moved: f64,
}

/// A transfer between memory and one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Transfer {
    /// Cycles for which the issuing warp is busy.
    pub issue: f64,
    /// Cycles for which it occupies the path into the multiprocessor.
    pub occupation: f64,
    /// Cycles from the first bytes to the last.
    pub arrival: f64,
    /// Cycles to the first bytes.
    pub latency: f64,
    /// Bytes through the second-level cache.
    pub cached: f64,
    /// Bytes from or to memory.
    pub memory: f64,
    /// Bytes written in halves of sectors.
    pub halves: f64,
}

/// The costs of one tile on one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Costs {
    /// Steps along the summed dimension.
    pub steps: usize,
    /// The group; its descriptors stay in use from tile to tile.
    pub group: usize,
    /// The fraction of a cluster's multiprocessors that have a tile.
    pub filled: f64,
    /// Both operands of a step: by bulk copy, and by the threads.
    pub operands: [Transfer; 2],
    /// The same for a tile's queries.
    pub queries: [Transfer; 2],
    /// Cycles to convert operands in registers, and into shared memory.
    pub convert: [f64; 2],
    /// Cycles of the matrix unit for a step's products: of a GEMM, scores, values.
    pub products: [f64; 3],
    /// Cycles of a step's values by fused multiply-adds, if the matrix unit does not multiply them.
    pub scalar: f64,
    /// Bytes that a step moves into and out of shared memory.
    pub shared_bytes: f64,
    /// Exponentials of a step and the related work.
    pub softmax: f64,
    /// Reading sums from tensor memory or registers.
    pub take: f64,
    /// Storing directly to memory.
    pub store: Transfer,
    /// Writing to the staging buffer.
    pub stage: f64,
    /// Bytes of the staging buffer that are used.
    pub staged_bytes: f64,
    /// Storing whole rows to memory.
    pub bulk_store: Transfer,
    /// Adding up the parts of a split sum.
    pub reduce: f64,
    /// Finding the tile's group.
    pub lookup: f64,
    /// Setting up the descriptors of another group.
    pub descriptors: f64,
    /// Fetching the next tile's number.
    pub counter: f64,
}

impl Costs {
    /// The costs of a tile of a kind.
    pub fn of(kind: &Kind, setting: &Setting) -> Self {
        let Setting {
            schedule,
            machine,
            ideal,
            ..
        } = setting;
        let start = |cycles: f64| if ideal.fill { 0.0 } else { cycles };
        let epilogue = epilogue::of(kind, setting);
        let step = setting.problem.model().step(kind, setting);
        let read = step
            .products
            .map(|shape| shape.map_or(0.0, |shape| shape.shared_bytes(setting)));
        Self {
            steps: kind.steps,
            group: kind.group,
            filled: kind.filled,
            operands: transfers(&step.operands, kind, setting),
            queries: step
                .queries
                .map_or_else(Default::default, |queries| transfers(&[queries], kind, setting)),
            convert: step.conversion.cycles(setting),
            products: step
                .products
                .map(|shape| shape.map_or(0.0, |shape| shape.cycles(setting))),
            scalar: step.scalar,
            shared_bytes: shared_bytes(&step.operands, &step.conversion)
                + (read.iter().sum::<f64>() + step.scores_moved),
            softmax: if ideal.conversion {
                0.0
            } else {
                step.softmax + step.scores_moved / machine.shared_rate
            },
            lookup: start(lookup(kind, schedule, machine)),
            descriptors: start(descriptors(schedule, machine)),
            counter: start(if schedule.order == Order::Dynamic {
                machine.counter
            } else {
                0.0
            }),
            ..epilogue
        }
    }
}

/// A table costs one load from the cache; a search costs one more for the sizes, and a few instructions per group.
fn lookup(kind: &Kind, schedule: &Schedule, machine: &Machine) -> f64 {
    let load = machine.load_latency[1];
    match schedule.lookup {
        Lookup::Precomputed => load,
        Lookup::Linear => load + assumed::GROUP_LOOKUP * (kind.group + 1) as f64,
    }
}

/// Only bulk copies use descriptors; if the host has made them once, there is no cost. Blocks make their own whenever they go on
/// to another group.
fn descriptors(schedule: &Schedule, machine: &Machine) -> f64 {
    let is_kept = schedule.setup == Setup::Once && schedule.maps == Maps::Prebuilt;
    if is_kept || machine.box_bytes.is_infinite() {
        return 0.0;
    }
    assumed::DESCRIPTOR_TRIPS * machine.load_latency[0]
}
