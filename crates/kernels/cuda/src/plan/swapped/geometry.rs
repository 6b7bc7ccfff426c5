//! Which variant of the swapped or of the unified kernel a schedule asks for, and whether it fits a multiprocessor.

use crate::plan::error::require;
use gauntlet_problems::GroupedGemm;
use gauntlet_problems::{Cluster, Epilogue, Lookup, Order, Packing, Roles, Schedule};

use crate::plan::groups::{has_one_depth, is_dual};
use crate::plan::variant::{format_define, most_registers, output_define};
use crate::plan::{PlanError, Source, Target, Variant};

/// Values of the depth that are loaded at a time.
pub(super) const CHUNK: usize = 128;
/// Weight rows of a tile, both weights' counted. In the swapped kernel two warp groups multiply 64 each, the M of
/// `wgmma.m64nNk16`, in the unified kernel four warps two times the 16 rows of `mma.m16n8k16` (PTX ISA).
pub(super) const ROWS: usize = 128;
/// Warp groups of the swapped kernel that multiply.
pub(super) const CONSUMERS: usize = 2;
/// Most tokens of a tile of the swapped kernel: the N of `wgmma.m64nNk16` (PTX ISA).
const MAX_WIDTH: usize = 256;
/// Most tokens of a tile of the unified kernel: a thread then has 128 sums.
const MAX_UNIFIED_WIDTH: usize = 128;
/// Two warp groups multiply, the warps of a third load: only whole groups can hand registers to others.
const THREADS: usize = (CONSUMERS + 1) * 128;
/// Threads of a block of the unified kernel.
const UNIFIED_THREADS: usize = 128;
/// Bytes of a chunk's scales of a tile in the unified kernel.
const UNIFIED_SCALE_BYTES: usize = ROWS * CHUNK / 16;
/// Bytes of scales of four chunks, which come together, and how many of them there are. (Repacked, a chunk's have a quarter of one.)
const SCALE_BYTES: usize = 32 * ROWS;
const SCALE_SLOTS: usize = 2;
/// Bytes of the barriers.
const BARRIER_BYTES: usize = 1024;
/// Bytes behind the ring.
const BYTES_BESIDE_RING: usize = SCALE_SLOTS * SCALE_BYTES + BARRIER_BYTES;
/// The swapped kernel has code for tiles of 8, 16, 24 … `FINE` columns, then in steps of 16. Each width makes the compiler slower:
/// on an H100's host these 20 take it 18 s, and all 32 take it 38 to 63 s. Measured there against code for all 32
/// (`results/h100/tile-widths/2026-11-26.json`): one product of 72 to 500 tokens takes 3 % less to 5 % more; mixtures of experts and
/// grouped cases take 10 % less to 2 % more, since their plans differ too. Steps of 32 beyond 160 columns would spare a third of
/// the compiler's time here, and cost up to 7 % more.
const FINE: usize = 64;
/// Most parts of a split tile.
const MAX_PARTS: usize = 64;

/// The sizes of a block's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Weight rows of a tile, of each of the two weights in the dual form: the schedule's `tile.m`.
    pub block_rows: usize,
    /// Most tokens of a tile.
    pub width: usize,
    /// Bytes of the operands' ring.
    pub ring_bytes: usize,
    /// Bytes of a block's shared memory beside it.
    bytes_beside_ring: usize,
    /// Blocks that share a multiprocessor.
    pub blocks: usize,
    /// Whether a tile takes the time of its own width, or that of the widest.
    pub mixed: bool,
    /// Whether all warps do the same work: the unified kernel.
    unified: bool,
    /// Whether there are two products.
    pub dual: bool,
    /// How weights are laid out in memory.
    pub packing: Packing,
}

impl Geometry {
    /// The sizes that a schedule asks for.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or it does not fit a multiprocessor.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        let dual = is_dual(gemm);
        let unified = schedule.roles == Roles::Unified;
        check_words(schedule)?;
        check_tile(schedule, dual)?;
        check_packing(gemm, schedule)?;
        let width = schedule.tile.n;
        let (unit, bytes_beside_ring) = match unified {
            true => (unit_bytes(width) + UNIFIED_SCALE_BYTES, 0),
            false => (unit_bytes(width), BYTES_BESIDE_RING),
        };
        let block_bytes = target.block_shared_bytes;
        let most_stages = (block_bytes - bytes_beside_ring) / unit;
        if schedule.stages < 2 || schedule.stages > most_stages {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "a ring holds 2 stages or more, each takes {unit} B, and a block has {block_bytes} B with \
                     {bytes_beside_ring} B for other things"
                ),
                match most_stages {
                    ..2 => "choose 2, and a smaller tile.n".to_owned(),
                    _ => format!("choose 2 to {most_stages}, or a smaller tile.n"),
                },
            ));
        }
        let ring_bytes = schedule.stages * unit;
        Ok(Self {
            block_rows: schedule.tile.m,
            width,
            ring_bytes,
            bytes_beside_ring,
            blocks: match unified {
                true => target
                    .blocks_with(ring_bytes)
                    .clamp(1, most_unified_blocks(width)),
                false => 1,
            },
            mixed: unified || mixes_widths(schedule.order),
            unified,
            dual,
            packing: schedule.packing,
        })
    }

    /// Whether a launch before the products brings tokens into their order.
    pub fn prepares_tokens(&self) -> bool {
        self.packing != Packing::Steps
    }

    /// Bytes beyond the last converted token that a copy of a whole tile may read: a chunk of the most tokens of a tile.
    pub fn copied_beyond(&self) -> usize {
        match self.prepares_tokens() {
            true => self.width * CHUNK * 2,
            false => 0,
        }
    }

    /// The columns that the kernel computes for a tile of `tokens` tokens, if tiles may differ in width: the next width that has
    /// code.
    pub fn columns(&self, tokens: usize) -> usize {
        let step = match self.unified {
            true => 8,
            false => width_step(tokens),
        };
        tokens.next_multiple_of(step).min(self.width)
    }

    /// Bytes of the partial sums of one part of a split tile.
    pub fn partial_bytes(&self) -> usize {
        ROWS * self.width * size_of::<f32>()
    }

    /// The kernel's variant.
    pub fn variant(&self, gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Variant {
        let of_both = [
            ("WIDTH", self.width),
            ("DUAL", usize::from(self.dual)),
            ("FORMAT", format_define(gemm.tokens)),
            ("OUTPUT", output_define(gemm.output)),
            ("REPACKED", packing_define(self.packing)),
            ("OVERLAP", usize::from(target.overlaps())),
        ];
        let (source, threads, own) = if self.unified {
            let own = vec![
                ("STAGES", schedule.stages),
                ("BLOCKS", self.blocks),
                ("SHARED_BYTES", self.ring_bytes),
            ];
            (Source::Unified, UNIFIED_THREADS, own)
        } else {
            let mixed = usize::from(mixes_widths(schedule.order));
            let own = vec![("MIXED", mixed), ("RING", self.ring_bytes), ("FINE", FINE)];
            (Source::Swapped, THREADS, own)
        };
        let defines = of_both.into_iter().chain(own);
        Variant {
            source,
            defines: defines.map(|(name, value)| (name, value.to_string())).collect(),
            threads: threads as u32,
            shared_bytes: (self.ring_bytes + self.bytes_beside_ring) as u32,
            registers: most_registers(threads * self.blocks),
        }
    }
}

/// Most blocks of the unified kernel that have the registers for their sums, converted weights and addresses: a third of
/// a multiprocessor's suffices for 64 sums a thread.
fn most_unified_blocks(width: usize) -> usize {
    if width > 64 { 2 } else { 3 }
}

/// The distance between neighbouring widths that have code, at `columns` columns.
fn width_step(columns: usize) -> usize {
    if columns <= FINE { 8 } else { 16 }
}

/// Whether tiles of unequal widths keep their widths in the swapped kernel. The code for each width follows the next, from wide to narrow (a
/// choice inside the loop over tiles would make the compiler serialise wgmma), so workers must process tiles in that
/// order; other orders compute every tile at full width.
pub(super) fn mixes_widths(order: Order) -> bool {
    order == Order::Sorted
}

/// Bytes of one stage: a chunk of tokens as fp16, and of packed weights.
fn unit_bytes(width: usize) -> usize {
    width * CHUNK * 2 + ROWS * CHUNK / 2
}

/// The value of `REPACKED`.
fn packing_define(packing: Packing) -> usize {
    match packing {
        Packing::Canonical => 0,
        Packing::Fragments => 1,
        Packing::Steps => 2,
    }
}

/// Whether the kernel reads weights as they are laid out.
fn check_packing(gemm: &GroupedGemm, schedule: &Schedule) -> Result<(), PlanError> {
    if schedule.packing != Packing::Steps {
        return Ok(());
    }
    let why = if schedule.roles == Roles::Unified {
        "only the swapped kernel, which has roles, copies tokens by tensor maps"
    } else if !gemm.tokens.is_half() {
        "NVFP4 tokens are converted into the order of fragments"
    } else if !has_one_depth(gemm) {
        "one tensor map describes the tokens of all groups, so K has to be the same"
    } else {
        return Ok(());
    };
    Err(PlanError::word(
        "packing",
        schedule.packing,
        why,
        "choose fragments or canonical",
    ))
}

fn check_tile(schedule: &Schedule, dual: bool) -> Result<(), PlanError> {
    let (rows, width) = (if dual { ROWS / 2 } else { ROWS }, schedule.tile.n);
    let (most, unit) = match schedule.roles {
        Roles::Unified => (MAX_UNIFIED_WIDTH, "mma.sync"),
        Roles::Specialised => (MAX_WIDTH, "wgmma"),
    };
    require! {
        "tile.m": schedule.tile.m, rows,
            "with swap-ab, a block holds 128 weight rows, in the dual form 64 of each weight";
    }
    if !width.is_multiple_of(8) || width == 0 || width > most {
        return Err(PlanError::word(
            "tile.n",
            width,
            format!("tokens are the columns of {unit}, 8 to {most} in steps of 8"),
            format!("choose {}", width.next_multiple_of(8).clamp(8, most)),
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
    if !(1..=MAX_PARTS).contains(&schedule.split_k) {
        return Err(PlanError::word(
            "split-k",
            schedule.split_k,
            format!("the last part of a tile adds up all of them; {MAX_PARTS} are the most"),
            format!("choose 1 to {MAX_PARTS}"),
        ));
    }
    Ok(())
}
