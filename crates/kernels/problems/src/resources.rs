//! A schedule's requirements on a processor: steps, buffers and accumulators.

mod attention;

use crate::{
    Cluster, Epilogue, Form, GroupedGemm, Operation, Order, Packing, Roles, Schedule, Tile, TokenFormat,
};
use gauntlet_device::Arch;

pub use attention::{
    FEW_QUERIES, HeadSets, HopperAttention, MAX_SPECIALISED_STAGES, WarpGroups, by_mma_sync, head_sets,
    key_warps, last_bytes, merged_bytes, most_visible, multiplied_bytes, multiplied_head,
    multiplied_value_bytes, operands_made_ready, padded_row, resident_keys, warp_groups,
};

/// Rows of scales that Blackwell's tensor memory takes in one block (PTX ISA, tcgen05 block scaling: 128×4 scales).
const SCALE_ROWS: usize = 128;

/// Bytes of a row that a bulk tensor copy brings at least (CUDA driver API, cuTensorMapEncodeTiled: boxDim).
const SCALE_COPY: usize = 16;
/// Bytes of an fp16 value.
const HALF: usize = 2;
/// Bytes of an fp32 value.
const SUM: usize = 4;
/// Slots of scales of the swapped kernel on sm_90a. Each serves two steps, because of the least number of bytes that a
/// bulk copy moves of a row 128 deep.
const SWAPPED_SCALE_SLOTS: usize = 4;
/// Bytes of that kernel's barriers.
const BARRIERS: usize = 1024;

/// The newest instruction set whose kernels run on every newer GPU too: `mma.sync`, also of e4m3, and copies by threads.
pub const COMMON_KERNELS: Arch = Arch::Sm89;

/// The instruction set of the kernels that compute a problem on a GPU of `arch`. Blackwell's native kernel multiplies NVFP4
/// tokens alone; attention and all other tokens take the [kernels that run on every newer GPU](COMMON_KERNELS). Plans, tile
/// programs, resources and costs are chosen by the result, not by the GPU's own instruction set.
pub fn kernel_arch(problem: &Operation, arch: Arch) -> Arch {
    let is_native = match problem {
        Operation::GroupedGemm(gemm) => gemm.tokens == TokenFormat::Nvfp4,
        Operation::Attention(_) => false,
    };
    match arch {
        Arch::Sm100a if !is_native => COMMON_KERNELS,
        arch => arch,
    }
}

/// Weight matrices a tile multiplies with: two in the dual form and one otherwise.
pub fn weights(gemm: &GroupedGemm) -> usize {
    match gemm.form {
        Form::Plain => 1,
        Form::Swiglu => 2,
    }
}

/// Whether a product on sm_90a is one of few tokens, which `mma.sync.m16n8k16` multiplies instead of `wgmma`: weights are
/// the 16 or 32 rows, and at most 16 tokens the columns, both converted in registers.
pub fn is_narrow(schedule: &Schedule) -> bool {
    let Tile { m, n, .. } = schedule.tile;
    schedule.swap_ab && (m == 16 || m == 32) && n <= 16
}

/// Whether a GEMM is computed by the unified CUDA kernel, from sm_80 to sm_90a: weights are the rows, all warps do the same
/// work, and their products are `mma.sync` on tokens that were converted beforehand.
pub fn is_unified(schedule: &Schedule, arch: Arch) -> bool {
    schedule.swap_ab
        && !is_narrow(schedule)
        && schedule.roles == Roles::Unified
        && matches!(arch, Arch::Sm80 | Arch::Sm89 | Arch::Sm90a)
}

/// Whether a separate kernel converts operands to fp16 once, because copies bring them directly to where the matrix unit
/// reads them: tokens of a swapped GEMM on sm_90a, unless weights are in steps, and of the unified kernel. (The blocks of
/// attention convert their operands themselves.)
pub fn converts_beforehand(schedule: &Schedule, problem: &Operation, arch: Arch) -> bool {
    match (problem, kernel_arch(problem, arch)) {
        (Operation::GroupedGemm(_), Arch::Sm90a) => schedule.swap_ab && schedule.packing != Packing::Steps,
        (Operation::GroupedGemm(_), arch @ (Arch::Sm80 | Arch::Sm89)) => is_unified(schedule, arch),
        _ => false,
    }
}

/// Steps along the summed dimension of the shortest piece of work: K of a group, keys of a sequence. Groups without
/// rows and sequences without queries are no work; 0 if there is none at all.
pub fn fewest_steps(schedule: &Schedule, problem: &Operation) -> usize {
    let fewest = match problem {
        Operation::GroupedGemm(gemm) => gemm
            .groups
            .iter()
            .filter(|shape| shape.m > 0 && shape.n > 0)
            .map(|shape| shape.k.div_ceil(schedule.tile.k))
            .min(),
        Operation::Attention(attention) => attention
            .sequences
            .iter()
            .filter(|sequence| sequence.queries > 0)
            .map(|sequence| sequence.keys.div_ceil(schedule.tile.n))
            .min(),
    };
    fewest.unwrap_or(0)
}

/// Bytes of operands one stage holds for one block.
///
/// NVFP4 operands are packed (half a byte a value and a scale for each 16). The instruction decides the rest. `tcgen05`
/// takes the operands without conversion, with scales rounded up to 128 rows. `mma.sync` takes dequantised registers,
/// so shared memory holds only the packed operands. `wgmma` takes rows from registers but columns from shared memory,
/// so the columns are stored as fp16. With swap-AB the columns are tokens, which are converted once beforehand; scales
/// have slots of their own. Without swap-AB, fp16 weights lie beside the packed ones, in [`block_bytes`]. Tiles with
/// few tokens ([`is_narrow`]) use `mma.sync`. A CPU keeps dequantised `f32` panels.
pub fn stage_bytes(schedule: &Schedule, problem: &Operation, arch: Arch) -> usize {
    let arch = kernel_arch(problem, arch);
    match problem {
        Operation::GroupedGemm(gemm) => gemm_stage_bytes(schedule, gemm, arch),
        Operation::Attention(attention) => attention::stage_bytes(schedule, attention, arch),
    }
}

/// Bytes of all buffers of one block: stages, the queries of attention with scores that lie there, and the staged
/// results. On a CPU those of one thread: a row panel and `stages` column panels.
pub fn block_bytes(schedule: &Schedule, problem: &Operation, arch: Arch) -> usize {
    let arch = kernel_arch(problem, arch);
    match problem {
        Operation::GroupedGemm(gemm) => gemm_block_bytes(schedule, gemm, arch),
        Operation::Attention(attention) => attention::block_bytes(schedule, attention, arch),
    }
}

/// `f32` accumulators of one block: C (twice for the dual form), or scores and output.
pub fn accumulators(schedule: &Schedule, problem: &Operation) -> usize {
    let Tile { m, n, k } = schedule.tile;
    match problem {
        Operation::GroupedGemm(gemm) => m * n * weights(gemm),
        Operation::Attention(_) => m * (n + k),
    }
}

/// Columns of tensor memory that the accumulators of one tile take; none in attention, which multiplies without it.
pub fn accumulator_columns(schedule: &Schedule, problem: &Operation) -> usize {
    let Tile { m, n, .. } = schedule.tile;
    let blocks = m.div_ceil(pair(schedule.cluster, Arch::Sm100a)).div_ceil(128);
    match problem {
        Operation::GroupedGemm(gemm) => blocks * n * weights(gemm),
        Operation::Attention(_) => 0,
    }
}

/// Columns of tensor memory one block needs: accumulators of one tile, and the scales of all stages (4 columns for each 128
/// rows and 64 values; PTX ISA, tcgen05 block scaling). Scales of a stage may not be overwritten until its products are
/// complete, which frees the stage too: a product and a later copy to tensor memory are no pair that runs in order (PTX ISA,
/// pipelined tcgen05 instructions).
pub fn tensor_memory_columns(schedule: &Schedule, problem: &Operation) -> usize {
    let Tile { m, n, k } = schedule.tile;
    let scales = match problem {
        Operation::GroupedGemm(gemm) => {
            let rows = m.div_ceil(pair(schedule.cluster, Arch::Sm100a));
            let (row_sets, column_sets) = operand_sets(schedule, gemm);
            let blocks = row_sets * rows.div_ceil(SCALE_ROWS) + column_sets * n.div_ceil(SCALE_ROWS);
            schedule.stages * 4 * k.div_ceil(64) * blocks
        }
        Operation::Attention(_) => 0,
    };
    accumulator_columns(schedule, problem) + scales
}

/// Columns of tensor memory (PTX ISA, Tensor Memory).
pub const TENSOR_MEMORY_COLUMNS: usize = 512;

/// Tiles whose accumulators tensor memory holds at once: two where a block has several tiles, whose results can leave while
/// the next tile is multiplied, and there is room.
pub fn tile_sums(schedule: &Schedule, problem: &Operation) -> usize {
    let twice = tensor_memory_columns(schedule, problem) + accumulator_columns(schedule, problem);
    let overlaps = schedule.order != Order::PerTile && schedule.roles == Roles::Specialised;
    match problem {
        Operation::GroupedGemm(_) if overlaps && twice <= TENSOR_MEMORY_COLUMNS => 2,
        _ => 1,
    }
}

/// Blocks that one `tcgen05` instruction spans: a pair along rows where the cluster has one.
fn pair(cluster: Cluster, arch: Arch) -> usize {
    if arch == Arch::Sm100a && cluster.m.is_multiple_of(2) {
        2
    } else {
        1
    }
}

fn gemm_block_bytes(schedule: &Schedule, gemm: &GroupedGemm, arch: Arch) -> usize {
    let Tile { m, n, k } = schedule.tile;
    let output = match schedule.epilogue {
        Epilogue::Staged => m.div_ceil(pair(schedule.cluster, arch)) * n * gemm.output.bytes(),
        Epilogue::Direct => 0,
    };
    let stages = schedule.stages * gemm_stage_bytes(schedule, gemm, arch);
    let buffers = match arch {
        Arch::Cpu => 4 * k * m * if schedule.swap_ab { weights(gemm) } else { 1 } + stages,
        _ if is_unified(schedule, arch) => stages,
        Arch::Sm90a if schedule.swap_ab => swapped_bytes(schedule, gemm, stages),
        // One slot is filled while products read the other; a single stage overlaps nothing.
        Arch::Sm90a => stages + schedule.stages.min(2) * weights(gemm) * n * k * HALF,
        Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => stages,
    };
    buffers + output
}

fn gemm_stage_bytes(schedule: &Schedule, gemm: &GroupedGemm, arch: Arch) -> usize {
    let Tile { m, n, k } = schedule.tile;
    let (row_sets, column_sets) = operand_sets(schedule, gemm);
    match arch {
        Arch::Cpu => column_sets * n * k * 4,
        _ if is_unified(schedule, arch) => row_sets * m * packed_bytes(k) + column_sets * n * k * HALF,
        Arch::Sm90a if schedule.swap_ab && !is_narrow(schedule) => {
            row_sets * m * k.div_ceil(2) + column_sets * n * k * HALF
        }
        Arch::Sm90a if !schedule.swap_ab => {
            (row_sets * m + column_sets * n) * (k.div_ceil(2) + k.div_ceil(16).max(SCALE_COPY))
        }
        Arch::Sm80 | Arch::Sm89 | Arch::Sm90a if schedule.swap_ab => {
            row_sets * m * packed_bytes(k) + column_sets * n * token_bytes(gemm, k)
        }
        Arch::Sm80 | Arch::Sm89 | Arch::Sm90a => {
            row_sets * m * token_bytes(gemm, k) + column_sets * n * packed_bytes(k)
        }
        Arch::Sm100a => {
            let pair = pair(schedule.cluster, arch);
            let values = (row_sets * m + column_sets * n) * k.div_ceil(2) / pair;
            let scale_rows = row_sets * m.div_ceil(pair).next_multiple_of(SCALE_ROWS)
                + column_sets * n.next_multiple_of(SCALE_ROWS);
            values + scale_rows * k.div_ceil(16)
        }
    }
}

/// Bytes of the buffers of a block with swap-AB on sm_90a, including `stages` bytes of stages: slots of scales and
/// barriers follow the ring.
fn swapped_bytes(schedule: &Schedule, gemm: &GroupedGemm, stages: usize) -> usize {
    if is_narrow(schedule) {
        return stages;
    }
    let scales = SWAPPED_SCALE_SLOTS * weights(gemm) * schedule.tile.m * schedule.tile.k.div_ceil(8);
    stages + scales + BARRIERS
}

/// Matrices on the row and on the column side of a tile.
fn operand_sets(schedule: &Schedule, gemm: &GroupedGemm) -> (usize, usize) {
    if schedule.swap_ab {
        (weights(gemm), 1)
    } else {
        (1, weights(gemm))
    }
}

/// Bytes of `k` values of a token, as `mma.sync` finds them in shared memory: 16-bit floats have no scales.
fn token_bytes(gemm: &GroupedGemm, k: usize) -> usize {
    if gemm.tokens.is_half() {
        gemm.tokens.row_bytes(k)
    } else {
        packed_bytes(k)
    }
}

fn packed_bytes(k: usize) -> usize {
    k.div_ceil(2) + k.div_ceil(16)
}
