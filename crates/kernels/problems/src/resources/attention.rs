//! Attention's requirements. The three sm_90a kernels are counted according to their own layouts.

use std::ops::Range;

use crate::{Attention, AttentionFormat, OutputFormat, Sequence};
use gauntlet_device::Arch;

use super::{HALF, SUM};
use crate::{Arithmetic, Epilogue, Roles, Schedule, Scores, Values};

/// Queries of a warp group: the rows of `wgmma` (PTX ISA).
const GROUP_QUERIES: usize = 64;
/// Warp groups of a block of the resident kernel.
const RESIDENT_GROUPS: usize = 2;
/// Copied keys or values of a step that the specialised kernel has room for before they are converted.
const RAW_STAGES: usize = 3;
/// Bytes of barriers: of the specialised kernel, and of the resident one.
const SPECIALISED_BARRIERS: usize = 1024;
const RESIDENT_BARRIERS: usize = 64;
/// Least bytes of a block of the resident kernel: with as many, it has its multiprocessor alone.
const MIN_RESIDENT: usize = 114 << 10;
/// Bytes of a row's largest score and sum of weights.
const STATISTICS: usize = 8;
/// Bytes of the same values for a thread of the specialised kernel. A thread has two rows, each shared with three other
/// threads.
const MERGED_STATISTICS: usize = 16;

/// The CUDA kernels of attention on sm_90a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopperAttention {
    /// All warps do the same work, with `mma.sync`.
    Unified,
    /// One warp loads, two to four warp groups of 64 queries multiply by `wgmma`, and three warps convert e4m3
    /// operands.
    Specialised,
    /// All keys are in shared memory together, split over the two warp groups of each block of a cluster.
    Resident,
}

impl HopperAttention {
    /// The kernel that the schedule selects: with roles, a tile with the queries of one warp group selects the resident
    /// kernel.
    pub fn of(schedule: &Schedule) -> Self {
        match (schedule.roles, schedule.tile.m) {
            (Roles::Unified, _) => Self::Unified,
            (Roles::Specialised, GROUP_QUERIES) => Self::Resident,
            (Roles::Specialised, _) => Self::Specialised,
        }
    }
}

/// Whether attention is multiplied by `mma.sync`, which takes its operands from registers: always but on sm_90a, where
/// kernels with roles use `wgmma`.
pub fn by_mma_sync(schedule: &Schedule, arch: Arch) -> bool {
    match arch {
        Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => true,
        Arch::Sm90a => HopperAttention::of(schedule) == HopperAttention::Unified,
        Arch::Cpu => false,
    }
}

/// Queries of the unified kernel's smallest tile, the rows of one product of `mma.sync`: the warps of a block have the same
/// queries, and each has its keys of every step.
pub const FEW_QUERIES: usize = 16;
/// Warps of a block with such a tile.
const FEW_QUERIES_WARPS: usize = 4;
/// Padding of a row of sums that such warps leave for one another.
const MERGED_PADDING: usize = 32;
/// A word, with room for what lies at multiples of 16 bytes.
const LAST: usize = 16;

/// Warps of the unified kernel that have the same queries.
pub fn key_warps(schedule: &Schedule) -> usize {
    match schedule.tile.m {
        FEW_QUERIES => FEW_QUERIES_WARPS,
        _ => 1,
    }
}

/// Elements of a head as the kernels by `mma.sync` multiply them: of 8 bits, 32 at a time.
pub fn multiplied_head(attention: &Attention) -> usize {
    match attention.format.bytes() {
        1 => attention.head_size.next_multiple_of(32),
        _ => attention.head_size,
    }
}

/// Bytes from a row of a head to the next in the shared memory of those kernels: rows are padded so that the swizzle spreads
/// them over all banks.
pub fn padded_row(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

/// Bytes of what such warps leave for one another, in place of operands that are done with: sums and statistics of rows.
pub fn merged_bytes(schedule: &Schedule, attention: &Attention) -> usize {
    match key_warps(schedule) {
        1 => 0,
        warps => warps * schedule.tile.m * (multiplied_head(attention) * SUM + MERGED_PADDING + STATISTICS),
    }
}

/// Bytes of a block's knowledge of whether its part of a tile is the last; warps with queries of their own need none.
pub fn last_bytes(schedule: &Schedule) -> usize {
    match (key_warps(schedule), schedule.split_k) {
        (1, _) | (_, ..=1) => 0,
        _ => LAST,
    }
}

/// How the heads of a sequence are cut into tiles of rows: a tile's rows are queries of one head, or of all heads that share
/// a key head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadSets {
    /// Sets of heads.
    pub count: usize,
    /// Query heads of a set, whose rows lie one head after another.
    pub heads: usize,
}

impl HeadSets {
    /// A set for each head.
    pub fn alone(attention: &Attention) -> Self {
        Self {
            count: attention.heads,
            heads: 1,
        }
    }
}

/// The sets of heads whose rows are cut into tiles. The unified and the specialised kernel pack the heads that share a key
/// head, so that keys are read once for all of them, where no head has the queries for a tile of its own. Queries of one warp
/// group of the specialised kernel share their scale, so it packs no heads with scales of blocks.
pub fn head_sets(schedule: &Schedule, attention: &Attention, arch: Arch) -> HeadSets {
    let packs = match HopperAttention::of(schedule) {
        HopperAttention::Unified => by_mma_sync(schedule, arch) && schedule.scores == Scores::Registers,
        HopperAttention::Specialised => arch == Arch::Sm90a && !attention.has_block_scales(),
        HopperAttention::Resident => false,
    };
    let few = attention
        .sequences
        .iter()
        .all(|sequence| sequence.queries < schedule.tile.m);
    if packs && few {
        return HeadSets {
            count: attention.kv_heads,
            heads: attention.heads / attention.kv_heads,
        };
    }
    HeadSets::alone(attention)
}

/// The most keys that any of these rows of a set of heads sees.
pub fn most_visible(attention: &Attention, sequence: Sequence, rows: Range<usize>) -> usize {
    let (first, last) = (rows.start, rows.end.max(1) - 1);
    let queries = sequence.queries.max(1);
    let ends_a_head = first / queries != last / queries;
    attention.visible_keys(sequence, if ends_a_head { queries - 1 } else { last % queries })
}

/// The most keys that the blocks of a cluster can hold, if the kernel holds all keys together: a longer sequence does
/// not fit.
pub fn resident_keys(schedule: &Schedule, arch: Arch) -> Option<usize> {
    let is_resident = arch == Arch::Sm90a && HopperAttention::of(schedule) == HopperAttention::Resident;
    is_resident.then(|| RESIDENT_GROUPS * schedule.split_k * schedule.tile.n)
}

/// How the specialised kernel of sm_90a shares out a tile over its warp groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpGroups {
    /// All of them.
    pub count: usize,
    /// Groups that have the same queries, each with a part of every step's keys.
    pub parts: usize,
    /// As many as have the registers for their sums, scores and weights.
    pub most: usize,
}

/// Most stages of the specialised kernel: a word has a bit for each stage of K and of V, and one for tiles.
pub const MAX_SPECIALISED_STAGES: usize = 15;

/// The warp groups of a tile: a group for 64 queries, or, where four have the registers, two for the same 64. Four find
/// more to do at a time than two.
pub fn warp_groups(schedule: &Schedule, attention: &Attention) -> WarpGroups {
    let is_converted = operands_made_ready(schedule, attention) == 2;
    let most = match (attention.head_size, is_converted) {
        (_, true) => 2,
        (..=64, false) => 4,
        (65.., false) => 3,
    };
    let groups = schedule.tile.m / GROUP_QUERIES;
    let parts = if 2 * groups == most { 2 } else { 1 };
    WarpGroups {
        count: groups * parts,
        parts,
        most,
    }
}

/// Bytes of keys, and of queries, of attention as a GPU's matrix unit takes them.
pub fn multiplied_bytes(schedule: &Schedule, attention: &Attention) -> usize {
    match schedule.arithmetic {
        Arithmetic::Fp8 => attention.format.bytes(),
        Arithmetic::Fp16 => HALF,
    }
}

/// Bytes of values, likewise: the specialised kernel of sm_90a and the unified kernel multiply them by 16-bit weights, even
/// where scores are products of e4m3.
pub fn multiplied_value_bytes(schedule: &Schedule, attention: &Attention, arch: Arch) -> usize {
    match (arch, HopperAttention::of(schedule)) {
        (Arch::Sm90a, HopperAttention::Specialised)
        | (Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a, HopperAttention::Unified) => HALF,
        _ => multiplied_bytes(schedule, attention),
    }
}

/// Operands of a step (keys and values) that a block on sm_90a prepares in shared memory before `wgmma` takes them:
/// both if 8-bit operands are multiplied as fp16; only values if scores are products of e4m3. Preparing means
/// converting, or reordering with the keys first.
pub fn operands_made_ready(schedule: &Schedule, attention: &Attention) -> usize {
    let is_eight_bits = attention.format.bytes() < HALF;
    match (HopperAttention::of(schedule), schedule.arithmetic) {
        (HopperAttention::Unified, _) => 0,
        (_, Arithmetic::Fp16) if is_eight_bits => 2,
        (_, Arithmetic::Fp8) if is_eight_bits => 1,
        _ => 0,
    }
}

/// Bytes of keys and values that one stage holds for one block.
pub(super) fn stage_bytes(schedule: &Schedule, attention: &Attention, arch: Arch) -> usize {
    let values = match arch {
        Arch::Sm90a if !by_mma_sync(schedule, arch) => multiplied_value_bytes(schedule, attention, arch),
        _ => element_bytes(schedule, attention, arch),
    };
    if by_mma_sync(schedule, arch) {
        return schedule.tile.n * 2 * padded_row(multiplied_head(attention) * attention.format.bytes());
    }
    let of_a_value = element_bytes(schedule, attention, arch) + values;
    schedule.tile.n * attention.head_size * of_a_value
}

/// Bytes of all buffers of one block.
pub(super) fn block_bytes(schedule: &Schedule, attention: &Attention, arch: Arch) -> usize {
    let kernel = (arch == Arch::Sm90a).then(|| HopperAttention::of(schedule));
    match kernel {
        Some(HopperAttention::Specialised) => specialised_bytes(schedule, attention),
        Some(HopperAttention::Resident) => resident_bytes(schedule, attention),
        Some(HopperAttention::Unified) | None => staged_bytes(schedule, attention, arch),
    }
}

/// Queries, stages, scores with what goes with them, and the staged results.
fn staged_bytes(schedule: &Schedule, attention: &Attention, arch: Arch) -> usize {
    let queries = schedule.tile.m;
    let output = match schedule.epilogue {
        Epilogue::Staged => queries * padded_row(attention.head_size * attention.output.bytes()),
        Epilogue::Direct => 0,
    };
    let row = match by_mma_sync(schedule, arch) {
        true => padded_row(multiplied_head(attention) * attention.format.bytes()),
        false => attention.head_size * element_bytes(schedule, attention, arch),
    };
    let computed = queries * row
        + schedule.stages * stage_bytes(schedule, attention, arch)
        + score_bytes(schedule)
        + output;
    if !by_mma_sync(schedule, arch) {
        return computed;
    }
    computed.max(merged_bytes(schedule, attention)) + last_bytes(schedule)
}

/// Queries as copied, the ring of multiplied operands, the ring of operands not converted yet, and the data that warp
/// groups with the same queries exchange: sums of fp32, with two shifts and two sums of weights a thread.
fn specialised_bytes(schedule: &Schedule, attention: &Attention) -> usize {
    let row = attention.head_size * attention.format.bytes();
    let raw = if operands_made_ready(schedule, attention) > 0 {
        RAW_STAGES * schedule.tile.n * row
    } else {
        0
    };
    let ring = schedule.stages * stage_bytes(schedule, attention, Arch::Sm90a);
    let merged = match warp_groups(schedule, attention).parts {
        1 => 0,
        _ => schedule.tile.m * attention.head_size * SUM + schedule.tile.m * 2 * MERGED_STATISTICS,
    };
    schedule.tile.m * row + ring + raw + merged + SPECIALISED_BARRIERS
}

/// Queries, keys and values as copied, their converted forms, and partial results, of which each block merges its
/// share.
fn resident_bytes(schedule: &Schedule, attention: &Attention) -> usize {
    let row = attention.head_size * attention.format.bytes();
    let keys = RESIDENT_GROUPS * schedule.tile.n;
    let made_ready = operands_made_ready(schedule, attention)
        * keys
        * attention.head_size
        * multiplied_bytes(schedule, attention);
    // Parts are exchanged in fp16 if the result has no more precision. Values of bf16 may exceed the range of fp16, and
    // so may parts that are multiplied by the scales of blocks.
    let is_half = attention.output == OutputFormat::F16
        && attention.format != AttentionFormat::Bf16
        && !attention.has_block_scales();
    let partial = attention.head_size * if is_half { HALF } else { SUM } + STATISTICS;
    let merged = RESIDENT_GROUPS * GROUP_QUERIES * partial;
    let needed = schedule.tile.m * row + 2 * keys * row + made_ready + merged + RESIDENT_BARRIERS;
    needed.max(MIN_RESIDENT)
}

/// Bytes of a block's scores and weights in shared memory, and of what sums of earlier steps are multiplied by. Weights
/// are fp16 for the matrix unit, fp32 for multiply-adds; in place of the scores they take no room of their own.
fn score_bytes(schedule: &Schedule) -> usize {
    let weight = match schedule.values {
        Values::Matrix => HALF,
        Values::Scalar => SUM,
    };
    let of_a_key = match schedule.scores {
        Scores::Registers => return 0,
        Scores::InPlace => SUM,
        Scores::Separate => SUM + weight,
    };
    schedule.tile.m * (schedule.tile.n * of_a_key + SUM)
}

/// Bytes of an operand of attention in a block's memory: on GPUs as it is multiplied, but `mma.sync` converts what it
/// takes from there.
fn element_bytes(schedule: &Schedule, attention: &Attention, arch: Arch) -> usize {
    match arch {
        Arch::Cpu => SUM,
        _ if by_mma_sync(schedule, arch) => attention.format.bytes(),
        _ => multiplied_bytes(schedule, attention),
    }
}
