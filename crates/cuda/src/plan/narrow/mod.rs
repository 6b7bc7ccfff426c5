//! The narrow kernel: few tokens, so the time is that of reading the weights. Warps stream rows of weights from global
//! memory to registers, and those of a block share out the depth.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use gauntlet_problem::GroupedGemm;
use gauntlet_schedule::{Cluster, Epilogue, Lookup, Order, Roles, Schedule};

use super::groups::{self, check_sizes, check_tiles, depth, is_dual};
use super::variant::{most_registers, output_define};
use super::{Addresses, Group, Launch, Memory, Plan, PlanError, Source, Variant, Weights};

/// Weight rows of a block, both weights' counted: two of the 16 rows of `mma.m16n8k16` (PTX ISA).
const ROWS: usize = 32;
const WARP_THREADS: usize = 32;
/// Most warps of a block.
const MOST_WARPS: usize = 16;
/// Values of the depth that a warp reads at a time: 64 bytes of a row.
const CHUNK: usize = 128;
/// Where a table begins: at a multiple of a line of L2.
const ALIGNMENT: usize = 128;

/// A problem for the narrow kernel.
#[derive(Debug)]
pub struct NarrowPlan {
    gemm: GroupedGemm,
    variant: Variant,
    blocks: Vec<Block>,
}

/// What a block computes: the schedule's `tile.m` weight rows against some tokens, over the whole depth.
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
    count: u32,
    reserved: u32,
}

impl NarrowPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel cannot do what a word says, or a size is beyond its numbers.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule) -> Result<Self, PlanError> {
        check_sizes(gemm)?;
        check_words(gemm, schedule)?;
        let tile = schedule.tile;
        let tiles = gemm
            .groups
            .iter()
            .map(|shape| shape.n.div_ceil(tile.m).saturating_mul(shape.m.div_ceil(tile.n)));
        check_tiles(tiles.fold(0, usize::saturating_add))?;
        let blocks = gemm.groups.iter().enumerate().flat_map(|(group, shape)| {
            let tokens = (0..shape.m).step_by(tile.n);
            tokens.flat_map(move |token| {
                (0..shape.n).step_by(tile.m).map(move |row| Block {
                    group: group as u32,
                    row: row as u32,
                    token: token as u32,
                    width: tile.n.min(shape.m - token) as u32,
                })
            })
        });
        Ok(Self {
            gemm: gemm.clone(),
            variant: variant(gemm, schedule),
            blocks: blocks.collect(),
        })
    }

    /// What each block computes.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn blocks_begin(&self) -> usize {
        (self.gemm.groups.len() * size_of::<Group>()).next_multiple_of(ALIGNMENT)
    }
}

impl Plan for NarrowPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        let groups = groups::table(&self.gemm, weights, |_| 0);
        let mut tables = bytemuck::cast_slice(&groups).to_vec();
        tables.resize(self.blocks_begin(), 0);
        tables.extend_from_slice(bytemuck::cast_slice(&self.blocks));
        Memory {
            tables,
            ..Memory::default()
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.blocks.is_empty() {
            return Vec::new();
        }
        let parameter = Parameter {
            tokens: addresses.tokens,
            token_scales: addresses.token_scales,
            output: addresses.output,
            groups: addresses.tables,
            blocks: addresses.tables + self.blocks_begin() as u64,
            count: self.blocks.len() as u32,
            reserved: 0,
        };
        vec![Launch {
            grid: self.blocks.len() as u32,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
        }]
    }
}

fn variant(gemm: &GroupedGemm, schedule: &Schedule) -> Variant {
    let deepest = gemm.groups.iter().map(|shape| depth(shape.k)).max().unwrap_or(0);
    let warps = deepest.div_ceil(schedule.tile.k).clamp(1, MOST_WARPS);
    let tokens = schedule.tile.n;
    let defines = [
        ("WARPS", warps),
        ("TOKENS", tokens),
        ("DUAL", usize::from(is_dual(gemm))),
        ("OUTPUT", output_define(gemm.output)),
    ];
    Variant {
        source: Source::Narrow,
        defines: BTreeMap::from(defines.map(|(name, value)| (name, value.to_string()))),
        threads: (warps * WARP_THREADS) as u32,
        // Each warp's sums, which one of them adds up.
        shared_bytes: (warps * ROWS * tokens * size_of::<f32>()) as u32,
        registers: most_registers(warps * WARP_THREADS),
    }
}

fn check_words(gemm: &GroupedGemm, schedule: &Schedule) -> Result<(), PlanError> {
    let tile = schedule.tile;
    let rows = if is_dual(gemm) { ROWS / 2 } else { ROWS };
    let (cluster, alone) = (schedule.cluster, Cluster { m: 1, n: 1 });
    PlanError::unless(
        "tile.m",
        tile.m,
        rows,
        "a block of the narrow kernel has 32 weight rows, of both weights",
    )?;
    if tile.n != 8 && tile.n != 16 {
        return Err(PlanError::word(
            "tile.n",
            tile.n,
            "tokens of the narrow kernel are one or two times the 8 columns of mma.m16n8k16",
            "choose 8 or 16",
        ));
    }
    if tile.k == 0 || !tile.k.is_multiple_of(CHUNK) {
        return Err(PlanError::word(
            "tile.k",
            tile.k,
            "a warp of the narrow kernel takes a share of the depth of so many values at least, 128 at a time",
            format!("choose {}", tile.k.next_multiple_of(CHUNK).max(CHUNK)),
        ));
    }
    PlanError::unless(
        "stages",
        schedule.stages,
        1,
        "the narrow kernel has no operand buffers; it loads to registers",
    )?;
    PlanError::unless(
        "roles",
        schedule.roles,
        Roles::Unified,
        "every warp of the narrow kernel loads and multiplies",
    )?;
    PlanError::unless(
        "epilogue",
        schedule.epilogue,
        Epilogue::Direct,
        "the narrow kernel stores from registers",
    )?;
    PlanError::unless(
        "order",
        schedule.order,
        Order::PerTile,
        "the narrow kernel has a block for each tile",
    )?;
    PlanError::unless(
        "lookup",
        schedule.lookup,
        Lookup::Precomputed,
        "the narrow kernel's blocks are in a table",
    )?;
    PlanError::unless(
        "split-k",
        schedule.split_k,
        1,
        "warps of a block share out the depth; blocks do not",
    )?;
    PlanError::unless(
        "cluster",
        cluster,
        alone,
        "blocks of the narrow kernel share no loads",
    )
}
