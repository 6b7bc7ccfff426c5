//! The cost of each operation for a tile of one kind, in cycles and bytes.

mod epilogue;
mod operands;
mod products;

use gauntlet_operations::Operation;
use gauntlet_operations::{Lookup, Maps, Order, Schedule, Setup};

use super::assumed;
use super::ideal::Ideal;
use super::machine::Machine;
use super::work::{Bundle, Kind};

/// The setting in which a schedule runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) problem: &'a Operation,
    pub(super) schedule: &'a Schedule,
    pub(super) machine: &'a Machine,
    pub(super) bundle: Bundle,
    pub(super) ideal: Ideal,
}

/// A transfer between memory and one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Transfer {
    /// Cycles for which the issuing warp is busy.
    pub(super) issue: f64,
    /// Cycles for which it occupies the path into the multiprocessor.
    pub(super) occupation: f64,
    /// Cycles from the first bytes to the last.
    pub(super) arrival: f64,
    /// Cycles to the first bytes.
    pub(super) latency: f64,
    /// Bytes through the second-level cache.
    pub(super) cached: f64,
    /// Bytes from or to memory.
    pub(super) memory: f64,
    /// Bytes written in halves of sectors.
    pub(super) halves: f64,
}

/// The costs of one tile on one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Costs {
    pub(super) steps: usize,
    /// The group; its descriptors stay in use from tile to tile.
    pub(super) group: usize,
    /// The fraction of a cluster's multiprocessors that have a tile.
    pub(super) filled: f64,
    /// Both operands of a step: by bulk copy, and by the threads.
    pub(super) operands: [Transfer; 2],
    /// The same for a tile's queries.
    pub(super) queries: [Transfer; 2],
    /// Cycles to convert operands in registers, and into shared memory.
    pub(super) convert: [f64; 2],
    /// Cycles of the matrix unit for a step's products: of a GEMM, scores, values.
    pub(super) products: [f64; 3],
    /// Cycles of a step's values by fused multiply-adds, if the matrix unit does not multiply them.
    pub(super) scalar: f64,
    /// Bytes that a step moves into and out of shared memory.
    pub(super) shared_bytes: f64,
    /// Exponentials of a step and the related work.
    pub(super) softmax: f64,
    /// Reading sums from tensor memory or registers.
    pub(super) take: f64,
    /// Storing directly to memory.
    pub(super) store: Transfer,
    /// Writing to the staging buffer.
    pub(super) stage: f64,
    /// Bytes of the staging buffer that are used.
    pub(super) staged_bytes: f64,
    /// Storing whole rows to memory.
    pub(super) bulk_store: Transfer,
    /// Adding up the parts of a split sum.
    pub(super) reduce: f64,
    /// Finding the tile's group.
    pub(super) lookup: f64,
    /// Setting up the descriptors of another group.
    pub(super) descriptors: f64,
    /// Fetching the next tile's number.
    pub(super) counter: f64,
}

impl Costs {
    pub(super) fn of(kind: &Kind, setting: &Setting) -> Self {
        let Setting {
            schedule,
            machine,
            ideal,
            ..
        } = setting;
        let start = |cycles: f64| if ideal.fill { 0.0 } else { cycles };
        let epilogue = epilogue::of(kind, setting);
        Self {
            steps: kind.steps,
            group: kind.group,
            filled: kind.filled,
            operands: operands::of_a_step(kind, setting),
            queries: operands::queries(kind, setting),
            convert: operands::conversion(kind, setting),
            products: products::of_a_step(kind, setting),
            scalar: products::scalar(setting),
            shared_bytes: operands::shared_bytes(kind, setting) + products::shared_bytes(kind, setting),
            softmax: products::softmax(setting),
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
