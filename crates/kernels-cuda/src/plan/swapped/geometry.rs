//! Which of the swapped kernel's variants a schedule asks for, and whether it fits a multiprocessor.

use crate::plan::error::require;
use std::collections::BTreeMap;

use gauntlet_operations::GroupedGemm;
use gauntlet_operations::{Cluster, Epilogue, Lookup, Order, Packing, Roles, Schedule};

use crate::plan::groups::is_dual;
use crate::plan::variant::{format_define, most_registers, output_define};
use crate::plan::{PlanError, Source, Variant};

/// Values of the depth that are loaded at a time.
pub(super) const CHUNK: usize = 128;
/// Weight rows of a tile, both weights' counted: two warp groups multiply 64 each, the M of `wgmma.m64nNk16` (PTX ISA).
pub(super) const ROWS: usize = 128;
/// Warp groups that multiply.
pub(super) const CONSUMERS: usize = 2;
/// Most tokens of a tile: the N of `wgmma.m64nNk16` (PTX ISA).
const MOST_WIDTH: usize = 256;
/// Two warp groups multiply, the warps of a third load: only whole groups can hand registers to others.
const THREADS: usize = (CONSUMERS + 1) * 128;
/// Bytes of shared memory a block may have at compute capability 9.0: 227 KiB (CUDA C++ Programming Guide, technical
/// specifications).
const SHARED_BYTES: usize = 232_448;
/// Bytes of scales of four chunks, which come together, and how many of them there are. (Repacked, a chunk's have a quarter of one.)
const SCALE_BYTES: usize = 32 * ROWS;
const SCALE_SLOTS: usize = 2;
/// Bytes of the barriers.
const BARRIER_BYTES: usize = 1024;
/// Bytes behind the ring.
const BYTES_BESIDE_RING: usize = SCALE_SLOTS * SCALE_BYTES + BARRIER_BYTES;
/// Most parts of a split tile.
const MOST_PARTS: usize = 64;

/// The sizes of a block's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Weight rows of a tile, of each of the two weights in the dual form: the schedule's `tile.m`.
    pub block_rows: usize,
    /// Most tokens of a tile.
    pub width: usize,
    /// Bytes of the operands' ring.
    pub ring_bytes: usize,
    /// Whether there are two products.
    pub dual: bool,
    /// Whether weights are repacked.
    pub repacked: bool,
}

impl Geometry {
    /// The sizes that a schedule asks for.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or it does not fit a multiprocessor.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule) -> Result<Self, PlanError> {
        let dual = is_dual(gemm);
        check_words(schedule)?;
        check_tile(schedule, dual)?;
        let width = schedule.tile.n;
        let unit = unit_bytes(width);
        let most_stages = (SHARED_BYTES - BYTES_BESIDE_RING) / unit;
        if schedule.stages < 2 || schedule.stages > most_stages {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "a ring holds 2 stages or more, each takes {unit} B, and a block has {SHARED_BYTES} B with \
                     {BYTES_BESIDE_RING} B for other things"
                ),
                format!("choose 2 to {most_stages}, or a smaller tile.n"),
            ));
        }
        Ok(Self {
            block_rows: schedule.tile.m,
            width,
            ring_bytes: schedule.stages * unit,
            dual,
            repacked: schedule.packing == Packing::Fragments,
        })
    }

    /// Bytes of a chunk of the most tokens a tile may have, converted.
    pub fn token_bytes(&self) -> usize {
        self.width * CHUNK * 2
    }

    /// Bytes of the partial sums of one part of a split tile.
    pub fn partial_bytes(&self) -> usize {
        ROWS * self.width * size_of::<f32>()
    }

    /// The kernel's variant.
    pub fn variant(&self, gemm: &GroupedGemm, schedule: &Schedule) -> Variant {
        let defines = [
            ("WIDTH", self.width),
            ("MIXED", usize::from(mixes_widths(schedule.order))),
            ("DUAL", usize::from(self.dual)),
            ("FORMAT", format_define(gemm.tokens)),
            ("OUTPUT", output_define(gemm.output)),
            ("REPACKED", usize::from(self.repacked)),
            ("RING", self.ring_bytes),
            ("OVERLAP", 1),
        ];
        Variant {
            source: Source::Swapped,
            defines: BTreeMap::from(defines.map(|(name, value)| (name, value.to_string()))),
            threads: THREADS as u32,
            shared_bytes: (self.ring_bytes + BYTES_BESIDE_RING) as u32,
            registers: most_registers(THREADS),
        }
    }
}

/// Whether tiles of unequal widths keep their widths. The code for each width follows the next, from wide to narrow (a
/// choice inside the loop over tiles would make the compiler serialise wgmma), so workers must process tiles in that
/// order; other orders compute every tile at full width.
pub(super) fn mixes_widths(order: Order) -> bool {
    order == Order::Sorted
}

/// Bytes of one stage: a chunk of tokens as fp16, and of packed weights.
fn unit_bytes(width: usize) -> usize {
    width * CHUNK * 2 + ROWS * CHUNK / 2
}

fn check_tile(schedule: &Schedule, dual: bool) -> Result<(), PlanError> {
    let (rows, width) = (if dual { ROWS / 2 } else { ROWS }, schedule.tile.n);
    require! {
        "tile.m": schedule.tile.m, rows,
            "with swap-ab, two warp groups hold 64 weight rows each, in the dual form one of each weight";
    }
    if !width.is_multiple_of(8) || width == 0 || width > MOST_WIDTH {
        return Err(PlanError::word(
            "tile.n",
            width,
            format!("tokens are the columns of wgmma, 8 to {MOST_WIDTH} in steps of 8"),
            format!("choose {}", width.next_multiple_of(8).clamp(8, MOST_WIDTH)),
        ));
    }
    require! {
        "tile.k": schedule.tile.k, CHUNK, "with swap-ab, a stage is 128 values deep";
    }
    Ok(())
}

fn check_words(schedule: &Schedule) -> Result<(), PlanError> {
    let (cluster, alone) = (schedule.cluster, Cluster { m: 1, n: 1 });
    require! {
        "roles": schedule.roles, Roles::Specialised,
            "with swap-ab, one warp group loads and the others multiply";
        "lookup": schedule.lookup, Lookup::Precomputed, "with swap-ab, workers read their tiles from a table";
        "epilogue": schedule.epilogue, Epilogue::Direct,
            "with swap-ab, results leave in whole lines through shared memory already";
        "cluster": cluster, alone, "with swap-ab, blocks share no loads";
    }
    if schedule.order == Order::Dynamic {
        return Err(PlanError::word(
            "order",
            schedule.order,
            "with swap-ab, each worker has tiles of its own in a table",
            "choose sorted",
        ));
    }
    if !(1..=MOST_PARTS).contains(&schedule.split_k) {
        return Err(PlanError::word(
            "split-k",
            schedule.split_k,
            format!("the last part of a tile adds up all of them; {MOST_PARTS} are the most"),
            format!("choose 1 to {MOST_PARTS}"),
        ));
    }
    Ok(())
}
