//! The narrow kernel, for few tokens: reading the weights determines its time. Each warp of a block copies its share of
//! every depth step to its own slots, some steps ahead, and multiplies it by `mma.sync`.

#[cfg(test)]
mod tests;

use crate::plan::error::require;
use std::array;
use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::{Cluster, Epilogue, Lookup, Order, Packing, Roles, Schedule};
use gauntlet_problems::{GemmShape, GroupedGemm};

use super::groups::{self, check_sizes, check_tiles, is_dual};
use super::target::RESERVED_BYTES;
use super::variant::{format_define, most_registers, output_define};
use super::{
    Addresses, Launch, Memory, Pass, Plan, PlanError, ScaleLayout, Source, Target, Variant, Weights,
};

/// Weight rows of a block, both weights' counted: two of the 16 rows of `mma.m16n8k16` (PTX ISA).
const ROWS: usize = 32;
const WARP_THREADS: usize = 32;
/// Most warps of a block.
const MAX_WARPS: usize = 16;
/// Values of the depth that a warp takes of a step: 64 bytes of a row.
const CHUNK: usize = 128;
/// Bytes of a chunk of a row, scales included.
const CHUNK_BYTES: usize = CHUNK / 2 + CHUNK / 16;
/// Most groups for which the kernel finds its blocks without a table.
const FEW: usize = 16;

/// A problem for the narrow kernel.
#[derive(Debug)]
pub struct NarrowPlan {
    gemm: GroupedGemm,
    variant: Variant,
    blocks: Vec<Block>,
    first_blocks: Option<[u32; FEW]>,
}

/// The work of a block: the schedule's `tile.m` weight rows against some tokens, over the whole depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    /// The group.
    pub group: u32,
    /// First weight row in the group; of each of the two weights in the dual form.
    pub row: u32,
    /// First token in the group.
    pub token: u32,
    /// Tokens, at most the schedule's `tile.n`.
    pub width: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Parameter {
    tokens: u64,
    token_scales: u64,
    output: u64,
    groups: u64,
    blocks: u64,
    first_blocks: [u32; FEW],
}

impl NarrowPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        check_sizes(gemm)?;
        check_words(gemm, schedule)?;
        let tile = schedule.tile;
        let cuts = |shape: &GemmShape| [(shape.m, tile.n), (shape.n, tile.m)];
        check_tiles(groups::corner_count(gemm, cuts))?;
        let blocks = groups::corners(gemm, cuts).map(|(group, shape, [token, row])| Block {
            group: group as u32,
            row: row as u32,
            token: token as u32,
            width: tile.n.min(shape.m - token) as u32,
        });
        let blocks: Vec<Block> = blocks.collect();
        Ok(Self {
            gemm: gemm.clone(),
            variant: variant(gemm, schedule, target)?,
            first_blocks: first_blocks(gemm.groups.len(), &blocks),
            blocks,
        })
    }

    /// The work of each block.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

impl Plan for NarrowPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        let blocks = match self.first_blocks {
            Some(_) => &[],
            None => self.blocks.as_slice(),
        };
        Memory {
            tables: groups::table_and(
                &self.gemm,
                ScaleLayout::Rows,
                weights,
                bytemuck::cast_slice(blocks),
            ),
            ..Memory::default()
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.blocks.is_empty() {
            return Vec::new();
        }
        let parameter = Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            groups: addresses.tables,
            blocks: match self.first_blocks {
                Some(_) => 0,
                None => addresses.tables + groups::table_end(&self.gemm) as u64,
            },
            first_blocks: self.first_blocks.unwrap_or_default(),
        };
        vec![Launch {
            pass: Pass::Main,
            grid: self.blocks.len() as u32,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
            mapped: None,
        }]
    }
}

/// The first block of each group, if there are few groups; entries after the last group are larger than every block
/// number.
fn first_blocks(groups: usize, blocks: &[Block]) -> Option<[u32; FEW]> {
    (groups <= FEW).then(|| {
        array::from_fn(|group| {
            if group < groups {
                blocks.partition_point(|block| (block.group as usize) < group) as u32
            } else {
                u32::MAX
            }
        })
    })
}

fn variant(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Variant, PlanError> {
    let (tokens, stages) = (schedule.tile.n, schedule.stages);
    let warps = schedule.tile.k / CHUNK;
    let threads = warps * WARP_THREADS;
    let token_bytes = match gemm.tokens.is_half() {
        true => gemm.tokens.row_bytes(CHUNK),
        false => CHUNK_BYTES,
    };
    let slot = ROWS * CHUNK_BYTES + tokens * token_bytes;
    let most = target.block_shared_bytes / (warps * slot);
    if stages == 0 || stages > most {
        return Err(PlanError::word(
            "stages",
            stages,
            format!(
                "a stage has {} bytes, and at least one must fit into shared memory",
                warps * slot
            ),
            match most {
                0 => format!("choose tile.k = {CHUNK}"),
                _ => format!("choose 1 to {most}"),
            },
        ));
    }
    let shared_bytes = warps * slot * stages;
    let blocks = blocks_a_processor(threads, shared_bytes, target);
    let defines = [
        ("TILE_K", schedule.tile.k),
        ("FORMAT", format_define(gemm.tokens)),
        ("TOKENS", tokens),
        ("STAGES", stages),
        ("DUAL", usize::from(is_dual(gemm))),
        ("OUTPUT", output_define(gemm.output)),
        ("BLOCKS", blocks),
        ("REPACKED", usize::from(schedule.packing == Packing::Fragments)),
        ("SHARED_BYTES", shared_bytes),
        ("OVERLAP", usize::from(target.overlaps())),
    ];
    Ok(Variant {
        source: Source::Narrow,
        defines: BTreeMap::from(defines.map(|(name, value)| (name, value.to_string()))),
        threads: threads as u32,
        shared_bytes: reserved_bytes(shared_bytes, blocks, target) as u32,
        registers: most_registers(threads * blocks),
    })
}

/// Blocks that should run on a multiprocessor: as many as shared memory holds, as long as a thread keeps enough
/// registers for the sums of 16 tokens, the converted operands and addresses (108, from the compiler's log).
fn blocks_a_processor(threads: usize, shared_bytes: usize, target: Target) -> usize {
    let with_registers = (1..=target.blocks_with(shared_bytes))
        .rev()
        .find(|blocks| most_registers(threads * blocks) >= 112);
    with_registers.unwrap_or(1)
}

/// Shared memory that a block requests. Where several blocks should share a multiprocessor, no further one may fit:
/// blocks of the next launch begin while these still compute, and would be placed three on some multiprocessors and one
/// on others (H200, dual form: 15.6 µs a call where registers let three fit, 10.9 with this).
fn reserved_bytes(used: usize, blocks: usize, target: Target) -> usize {
    let too_many = target.processor_shared_bytes / (blocks + 1) - RESERVED_BYTES;
    if blocks > 1 && target.overlaps() {
        used.max((too_many + 1).next_multiple_of(128))
    } else {
        used
    }
}

fn check_words(gemm: &GroupedGemm, schedule: &Schedule) -> Result<(), PlanError> {
    let tile = schedule.tile;
    let rows = if is_dual(gemm) { ROWS / 2 } else { ROWS };
    let (cluster, alone) = (schedule.cluster, Cluster { m: 1, n: 1 });
    require! {
        "tile.m": tile.m, rows, "a block of the narrow kernel has 32 weight rows, of both weights";
    }
    if tile.n != 8 && tile.n != 16 {
        return Err(PlanError::word(
            "tile.n",
            tile.n,
            "tokens of the narrow kernel are one or two times the 8 columns of mma.m16n8k16",
            "choose 8 or 16",
        ));
    }
    if tile.k == 0 || tile.k > MAX_WARPS * CHUNK || !tile.k.is_multiple_of(CHUNK) {
        let possible = tile.k.next_multiple_of(CHUNK).clamp(CHUNK, MAX_WARPS * CHUNK);
        return Err(PlanError::word(
            "tile.k",
            tile.k,
            "a step of the narrow kernel is 128 deep for each of its warps, which are at most 16",
            format!("choose {possible}"),
        ));
    }
    require! {
        "roles": schedule.roles, Roles::Unified, "every warp of the narrow kernel loads and multiplies";
        "epilogue": schedule.epilogue, Epilogue::Direct, "the narrow kernel has no staged results";
        "order": schedule.order, Order::PerTile, "the narrow kernel has a block for each tile";
        "lookup": schedule.lookup, Lookup::Precomputed,
            "blocks of the narrow kernel know their tiles beforehand";
        "split-k": schedule.split_k, 1, "warps of a block share out the depth; blocks do not";
        "cluster": cluster, alone, "blocks of the narrow kernel share no loads";
    }
    if schedule.packing == Packing::Steps {
        return Err(PlanError::word(
            "packing",
            schedule.packing,
            "the narrow kernel gives a lane 32 neighbouring values of the depth",
            "choose fragments or canonical",
        ));
    }
    Ok(())
}
