//! Which of the swapped kernel's variants a schedule asks for, and whether it fits a multiprocessor.

use std::collections::BTreeMap;

use gauntlet_problem::GroupedGemm;
use gauntlet_schedule::{Cluster, Epilogue, Lookup, Order, Roles, Schedule};

use crate::plan::groups::is_dual;
use crate::plan::variant::{most_registers, output_define};
use crate::plan::{PlanError, Source, Variant};

/// Values of the depth that are loaded at a time.
pub(super) const CHUNK: usize = 128;
/// Rows of weights of a warp group: the M of `wgmma.m64nNk16` (PTX ISA).
const WARP_GROUP_ROWS: usize = 64;
const WARP_GROUP_THREADS: usize = 128;
const WARP_THREADS: usize = 32;
/// Bytes of shared memory a block may have at compute capability 9.0 (same source): 227 KiB.
const SHARED_BYTES: usize = 232_448;
/// Most parts of a split tile.
const MOST_PARTS: usize = 64;
/// Bytes kept for barriers beside the ring.
const BARRIER_BYTES: usize = 1024;

/// The sizes of a block's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Warp groups that multiply.
    pub consumers: usize,
    /// Weight rows of a tile, of each of the two weights in the dual form: the schedule's `tile.m`.
    pub block_rows: usize,
    /// Most tokens of a tile.
    pub width: usize,
    /// Bytes of the operands' ring.
    pub ring_bytes: usize,
    /// Whether there are two products.
    pub dual: bool,
}

impl Geometry {
    /// The sizes that a schedule asks for.
    ///
    /// # Errors
    /// If the kernel cannot do what a word says, or it does not fit a multiprocessor.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule) -> Result<Self, PlanError> {
        check_words(schedule)?;
        let dual = is_dual(gemm);
        let consumers = consumers(schedule.tile.m, dual)?;
        let most = most_width(consumers);
        let width = schedule.tile.n;
        if !width.is_multiple_of(8) || width == 0 || width > most {
            return Err(PlanError::word(
                "tile.n",
                width,
                format!(
                    "tokens are the columns of wgmma, 8 to {most} in steps of 8 with {consumers} warp groups"
                ),
                format!("choose {}", width.next_multiple_of(8).clamp(8, most)),
            ));
        }
        let stage = stage_bytes(consumers, width);
        let most_stages = (SHARED_BYTES - BARRIER_BYTES) / stage;
        if schedule.stages < 2 || schedule.stages > most_stages {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "a ring holds 2 stages or more, each takes {stage} B, and a block has {SHARED_BYTES} B"
                ),
                format!("choose 2 to {most_stages}, or a smaller tile.n"),
            ));
        }
        Ok(Self {
            consumers,
            block_rows: schedule.tile.m,
            width,
            ring_bytes: schedule.stages * stage,
            dual,
        })
    }

    /// Weight rows of a tile in memory, both weights' counted.
    pub fn rows(&self) -> usize {
        self.consumers * WARP_GROUP_ROWS
    }

    /// Bytes of the partial sums of one part of a split tile.
    pub fn partial_bytes(&self) -> usize {
        self.rows() * self.width * size_of::<f32>()
    }

    /// The kernel's variant.
    pub fn variant(&self, gemm: &GroupedGemm, schedule: &Schedule) -> Variant {
        let threads = self.consumers * WARP_GROUP_THREADS + WARP_THREADS;
        let defines = [
            ("CONSUMERS", self.consumers),
            ("WIDTH", self.width),
            ("MIXED", usize::from(mixes_widths(schedule.order))),
            ("DUAL", usize::from(self.dual)),
            ("OUTPUT", output_define(gemm.output)),
            ("RING", self.ring_bytes),
            ("STAGED", usize::from(schedule.epilogue == Epilogue::Staged)),
            ("DYNAMIC", usize::from(schedule.order == Order::Dynamic)),
        ];
        Variant {
            source: Source::Swapped,
            defines: BTreeMap::from(defines.map(|(name, value)| (name, value.to_string()))),
            threads: threads as u32,
            shared_bytes: (self.ring_bytes + BARRIER_BYTES) as u32,
            registers: most_registers(threads),
        }
    }
}

/// Whether tiles of unequal widths keep theirs. Their code lies one width after another, from wide to narrow (a
/// choice inside the loop over tiles would make the compiler serialise wgmma), so workers must meet them in that
/// order; the others compute every tile at full width.
pub(super) fn mixes_widths(order: Order) -> bool {
    matches!(order, Order::Sorted | Order::Dynamic)
}

/// Bytes of one stage: tokens as fp16, packed weights, and the scales of two chunks, for a box's row has 16 bytes.
fn stage_bytes(consumers: usize, width: usize) -> usize {
    width * CHUNK * 2 + consumers * WARP_GROUP_ROWS * (CHUNK / 2 + 16)
}

/// Most columns whose sums fit the registers.
fn most_width(consumers: usize) -> usize {
    512 / consumers
}

fn consumers(tile_m: usize, dual: bool) -> Result<usize, PlanError> {
    let rows = if dual { 2 * tile_m } else { tile_m };
    let choices = if dual { "64 or 128" } else { "128 or 256" };
    match rows {
        128 => Ok(2),
        256 => Ok(4),
        _ => Err(PlanError::word(
            "tile.m",
            tile_m,
            format!("with swap-ab, two or four warp groups hold {WARP_GROUP_ROWS} weight rows each"),
            format!("choose {choices}"),
        )),
    }
}

fn check_words(schedule: &Schedule) -> Result<(), PlanError> {
    let (cluster, alone) = (schedule.cluster, Cluster { m: 1, n: 1 });
    PlanError::unless(
        "roles",
        schedule.roles,
        Roles::Specialised,
        "with swap-ab, one warp loads and the others multiply",
    )?;
    PlanError::unless(
        "lookup",
        schedule.lookup,
        Lookup::Precomputed,
        "with swap-ab, workers read their tiles from a table",
    )?;
    PlanError::unless("cluster", cluster, alone, "with swap-ab, blocks share no loads")?;
    PlanError::unless(
        "tile.k",
        schedule.tile.k,
        CHUNK,
        "with swap-ab, a stage is 128 values deep",
    )?;
    if schedule.split_k > MOST_PARTS {
        return Err(PlanError::word(
            "split-k",
            schedule.split_k,
            format!("the last part of a tile adds up all of them; {MOST_PARTS} are the most"),
            format!("choose 1 to {MOST_PARTS}"),
        ));
    }
    Ok(())
}
