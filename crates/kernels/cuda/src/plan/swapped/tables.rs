//! The tables of the swapped kernel and where they lie.

use bytemuck::Zeroable;
use gauntlet_problems::{GemmShape, GroupedGemm, Packing};

use super::abi::{INLINE_GROUPS, Inline, Parameter, Routed, Shape, Tile};
use super::dealt::Dealt;
use super::geometry::{CHUNK, CONSUMERS, Geometry};
use super::tokens;
use crate::packing;
use crate::plan::groups::{self, depth, within};
use crate::plan::{
    Addresses, Group, Launch, Map, MappedOperands, Matrix, Memory, Pass, PlanError, ScaleLayout, TokenMatrix,
    Weights,
};

/// Where a table begins: at a multiple of a line of L2.
pub(super) const ALIGNMENT: usize = 128;

/// The tables that the kernel reads beside the operands, and the memory that it writes beside the result.
#[derive(Debug)]
pub(super) struct Tables {
    gemm: GroupedGemm,
    pub(super) geometry: Geometry,
    pub dealt: Dealt,
    /// Where each group's items to convert begin, and where the last ones end.
    pub item_offsets: Vec<u32>,
    /// Blocks that convert them.
    token_blocks: u32,
    inline: Inline,
    /// Where each group's converted tokens begin in the workspace, and where the partial sums do.
    workspace: Vec<u64>,
    pub partials: u64,
    places: Places,
}

/// Bytes from the tables' begin.
#[derive(Debug, Clone, Copy)]
struct Places {
    items: usize,
    tiles: usize,
    end: usize,
}

impl Tables {
    /// The tables for distributed work, on a device with `processors` multiprocessors.
    ///
    /// # Errors
    /// If there is more to convert than 32 bits count.
    pub fn new(
        gemm: &GroupedGemm,
        geometry: &Geometry,
        dealt: Dealt,
        processors: usize,
    ) -> Result<Self, PlanError> {
        let (mut workspace, mut item_offsets) = (vec![0], vec![0]);
        let (mut bytes, mut items) = (0, 0);
        for (index, shape) in gemm.groups.iter().enumerate() {
            let converted = if geometry.prepares_tokens() { shape.m } else { 0 };
            let (rows, depth) = (converted.next_multiple_of(8), depth(shape.k));
            bytes += (rows * depth * 2) as u64;
            items += rows / 8 * (depth / CHUNK);
            within(
                format!("the items to convert up to group {index}"),
                items,
                u32::MAX as usize,
            )?;
            workspace.push(bytes);
            item_offsets.push(items as u32);
        }
        Ok(Self {
            places: Places::new(gemm.groups.len(), dealt.places()),
            inline: inline(gemm, &workspace, &item_offsets),
            gemm: gemm.clone(),
            geometry: *geometry,
            dealt,
            item_offsets,
            token_blocks: tokens::blocks(items, processors),
            workspace,
            partials: bytes,
        })
    }

    /// See [`crate::plan::Plan::memory`].
    pub fn memory(&self, weights: &[Weights]) -> Memory {
        let groups = groups::table(&self.gemm, ScaleLayout::Rows, weights, |group| {
            self.workspace[group]
        });
        let mut tables = vec![0; self.places.end];
        let mut put = |place: usize, bytes: &[u8]| tables[place..place + bytes.len()].copy_from_slice(bytes);
        put(0, bytemuck::cast_slice(&groups));
        put(self.places.items, bytemuck::cast_slice(&self.item_offsets));
        put(self.places.tiles, bytemuck::cast_slice(&self.dealt.table()));
        Memory {
            tables,
            maps: maps(&self.gemm, &self.geometry),
            // A tile that is computed at full width copies that many converted tokens, even where fewer remain.
            workspace_bytes: self.partials as usize
                + (self.dealt.slots * self.geometry.partial_bytes()).max(self.geometry.copied_beyond()),
            counter_bytes: 4 * self.dealt.slots * CONSUMERS,
        }
    }

    /// See [`crate::plan::Plan::launches`].
    pub fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.dealt.tiles.is_empty() {
            return Vec::new();
        }
        let table = |place: usize| addresses.tables + place as u64;
        let parameter = Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            group_table: addresses.tables,
            item_table: table(self.places.items),
            map_table: addresses.maps,
            tiles: table(self.places.tiles),
            workspace: addresses.workspace,
            partials: addresses.workspace + self.partials,
            counters: addresses.counters,
            tiles_a_worker: self.dealt.tiles_a_worker as u32,
            group_count: self.gemm.groups.len() as u32,
            items: self.item_offsets.last().copied().unwrap_or(0),
            weight_blocks: 0,
            inline: self.inline,
            routed: Routed::zeroed(),
        };
        let launch = |pass, grid, mapped| Launch {
            pass,
            grid,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
            mapped,
        };
        let rows = self.gemm.groups.iter().map(|shape| shape.m).sum();
        let tokens = direct_tokens(&self.gemm, &self.geometry, rows, addresses);
        let preparation = launch(Pass::Preparation, self.token_blocks, None);
        let products = launch(Pass::Main, self.dealt.workers() as u32, tokens);
        match tokens {
            None => vec![preparation, products],
            Some(_) => vec![products],
        }
    }
}

/// The tokens of `rows` rows together, if the kernel copies them as they are.
pub(super) fn direct_tokens(
    gemm: &GroupedGemm,
    geometry: &Geometry,
    rows: usize,
    addresses: &Addresses,
) -> Option<MappedOperands> {
    let shape = gemm.groups.first().filter(|_| !geometry.prepares_tokens())?;
    Some(MappedOperands::Tokens(TokenMatrix {
        address: addresses.operands[0],
        columns: shape.k as u64,
        rows: rows as u64,
    }))
}

/// The maps of all groups' weights.
pub(super) fn maps(gemm: &GroupedGemm, geometry: &Geometry) -> Vec<Map> {
    // Every group has the same number of maps; those of absent second weights are never used.
    let matrices = [
        Matrix::Weights,
        Matrix::WeightScales,
        Matrix::SecondWeights,
        Matrix::SecondWeightScales,
    ];
    let groups = gemm.groups.iter().enumerate();
    groups
        .flat_map(|(group, shape)| {
            matrices.into_iter().map(move |matrix| match geometry.packing {
                Packing::Canonical => map(geometry, matrix, group, shape),
                Packing::Fragments | Packing::Steps => repacked_map(geometry, matrix, group, shape),
            })
        })
        .collect()
}

fn map(geometry: &Geometry, matrix: Matrix, group: usize, shape: &GemmShape) -> Map {
    let depth = depth(shape.k) as u64;
    let (columns, box_columns) = match matrix {
        Matrix::Weights | Matrix::SecondWeights => (depth / 2, CHUNK as u32 / 2),
        // The least that the level-2 cache gives of a row: the scales of four chunks.
        _ => (depth / 16, 32),
    };
    let boxes = [box_columns, geometry.block_rows as u32];
    Map::of_bytes(matrix, group, [columns, shape.n as u64], boxes)
}

/// A chunk of a block's rows is contiguous: values as rows of 256 bytes, scales as rows of 128. A box that reaches
/// beyond the last row loads part of the next chunk; results for it are not stored.
fn repacked_map(geometry: &Geometry, matrix: Matrix, group: usize, shape: &GemmShape) -> Map {
    let sixteens = (depth(shape.k) / CHUNK * shape.n.div_ceil(packing::ROWS)) as u64;
    let rows = geometry.block_rows as u32;
    match matrix {
        Matrix::Weights | Matrix::SecondWeights => {
            Map::of_bytes(matrix, group, [256, 4 * sixteens], [256, rows / 4])
        }
        _ => Map::of_bytes(matrix, group, [128, sixteens], [128, rows / 16]),
    }
}

impl Places {
    fn new(groups: usize, tiles: usize) -> Self {
        let after = |begin: usize, bytes: usize| (begin + bytes).next_multiple_of(ALIGNMENT);
        let items = after(0, groups * size_of::<Group>());
        let tiles_place = after(items, (groups + 1) * size_of::<u32>());
        Self {
            items,
            tiles: tiles_place,
            end: after(tiles_place, tiles * size_of::<Tile>()),
        }
    }
}

/// The fields of the parameter that describe the groups, made once so that calls only copy them.
fn inline(gemm: &GroupedGemm, workspace: &[u64], item_offsets: &[u32]) -> Inline {
    let mut inline = Inline::zeroed();
    if gemm.groups.len() > INLINE_GROUPS {
        return inline;
    }
    let groups = groups::table(gemm, ScaleLayout::Rows, &[], |group| workspace[group]);
    for (shape, group) in inline.shapes.iter_mut().zip(groups) {
        *shape = Shape {
            tokens: group.tokens,
            token_scales: group.token_scales,
            output: group.output,
            workspace: group.workspace,
            m: group.m,
            n: group.n,
            k: group.k,
            columns: group.columns,
        };
    }
    inline.item_offsets[..item_offsets.len()].copy_from_slice(item_offsets);
    inline
}
