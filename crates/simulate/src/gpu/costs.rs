//! What each operation costs for a tile of one kind, in cycles and bytes.

mod epilogue;
mod operands;
mod products;

use gauntlet_operations::Operation;
use gauntlet_operations::{Lookup, Order, Schedule, Setup};

use super::assumed;
use super::ideal::Ideal;
use super::machine::Machine;
use super::work::{Bundle, Kind};

/// What a schedule is run with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) problem: &'a Operation,
    pub(super) schedule: &'a Schedule,
    pub(super) machine: &'a Machine,
    pub(super) bundle: Bundle,
    pub(super) ideal: Ideal,
}

/// Bytes on their way between memory and one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Transfer {
    /// Cycles for which whoever starts it is busy.
    pub(super) issue: f64,
    /// Cycles for which it occupies the way into the multiprocessor.
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
    /// The group, whose descriptors stay in use from tile to tile.
    pub(super) group: usize,
    /// Of the multiprocessors of a cluster, those that have a tile.
    pub(super) filled: f64,
    /// Both operands of a step by a bulk copy, and by the threads.
    pub(super) operands: [Transfer; 2],
    /// The same of a tile's queries.
    pub(super) queries: [Transfer; 2],
    /// Cycles to convert operands in registers, and into shared memory.
    pub(super) convert: [f64; 2],
    /// Cycles of the matrix unit for a step's products: of a GEMM, scores, values.
    pub(super) products: [f64; 3],
    /// Cycles of a step's values by fused multiply-adds, where the matrix unit does not multiply them.
    pub(super) scalar: f64,
    /// Bytes a step moves into and out of shared memory.
    pub(super) shared_bytes: f64,
    /// Exponentials and what goes with them for a step.
    pub(super) softmax: f64,
    /// Out of tensor memory, or registers.
    pub(super) take: f64,
    /// Directly to memory.
    pub(super) store: Transfer,
    /// Into the staging buffer.
    pub(super) stage: f64,
    /// Bytes of the staging buffer that are used.
    pub(super) staged_bytes: f64,
    /// Whole rows to memory.
    pub(super) bulk_store: Transfer,
    /// Adding up the parts of a split sum.
    pub(super) reduce: f64,
    /// Finding the tile's group.
    pub(super) lookup: f64,
    /// Making the descriptors of another group one's own.
    pub(super) descriptors: f64,
    /// To fetch the next tile's number.
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

/// A table is one load from the cache; a search one more for the sizes, and a few instructions a group.
fn lookup(kind: &Kind, schedule: &Schedule, machine: &Machine) -> f64 {
    let load = machine.load_latency[1];
    match schedule.lookup {
        Lookup::Precomputed => load,
        Lookup::Linear => load + assumed::GROUP_LOOKUP * (kind.group + 1) as f64,
    }
}

/// Only bulk copies have descriptors; made once, they are there already.
fn descriptors(schedule: &Schedule, machine: &Machine) -> f64 {
    if schedule.setup == Setup::Once || machine.box_bytes.is_infinite() {
        return 0.0;
    }
    assumed::DESCRIPTOR_TRIPS * machine.load_latency[0]
}
