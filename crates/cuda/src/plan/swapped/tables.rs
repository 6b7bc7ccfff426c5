//! The tables of the swapped kernel and where they lie.

use std::collections::BTreeMap;

use gauntlet_problem::GroupedGemm;

use super::abi::{Parameter, Tile, WHOLE};
use super::geometry::{CHUNK, Geometry};
use super::order::Share;
use super::work::{Kind, Piece};
use crate::plan::groups::{self, depth, within};
use crate::plan::{Addresses, Group, Launch, Map, Matrix, Memory, PlanError, Weights};

/// Where a table begins: at a multiple of a line of L2.
const ALIGNMENT: usize = 128;
/// Counters beside those of split tiles.
const COMMON_COUNTERS: usize = 4;
/// Rows of a box at most (CUDA driver API, cuTensorMapEncodeTiled: boxDim).
const MOST_BOX_ROWS: usize = 256;

/// What the kernel reads beside the operands, and what it writes beside the result.
#[derive(Debug)]
pub(super) struct Tables {
    gemm: GroupedGemm,
    geometry: Geometry,
    pub tiles: Vec<Tile>,
    pub offsets: Vec<u32>,
    pub convert_offsets: Vec<u32>,
    pub workers: u32,
    /// Where each group's converted tokens begin in the workspace, and where the partial sums do.
    workspace: Vec<u64>,
    pub partials: u64,
    slots: usize,
    places: Places,
}

/// Bytes from the tables' begin.
#[derive(Debug, Clone, Copy)]
struct Places {
    convert_offsets: usize,
    tiles: usize,
    offsets: usize,
    end: usize,
}

impl Tables {
    /// The tables for a grid of `workers` blocks.
    ///
    /// # Errors
    /// If there is more to convert than 32 bits count.
    pub fn new(
        gemm: &GroupedGemm,
        geometry: &Geometry,
        kinds: &[Kind],
        shares: &[Share],
        workers: usize,
    ) -> Result<Self, PlanError> {
        let slots = Slots::new(shares);
        let (mut tiles, mut offsets) = (Vec::new(), vec![0]);
        for share in shares {
            tiles.extend(share.iter().map(|piece| tile(piece, kinds, geometry, &slots)));
            offsets.push(tiles.len() as u32);
        }
        offsets.resize(offsets.len().max(workers + 1), tiles.len() as u32);

        let (mut workspace, mut convert_offsets) = (vec![0], vec![0]);
        let (mut bytes, mut items) = (0, 0);
        for (index, shape) in gemm.groups.iter().enumerate() {
            let (rows, depth) = (shape.m.next_multiple_of(8), depth(shape.k));
            bytes += (rows * depth * 2) as u64;
            items += rows / 8 * (depth / CHUNK);
            within(
                format!("the items to convert up to group {index}"),
                items,
                u32::MAX as usize,
            )?;
            workspace.push(bytes);
            convert_offsets.push(items as u32);
        }
        Ok(Self {
            places: Places::new(gemm.groups.len(), tiles.len(), offsets.len()),
            gemm: gemm.clone(),
            geometry: *geometry,
            tiles,
            offsets,
            convert_offsets,
            workers: workers as u32,
            workspace,
            partials: bytes,
            slots: slots.count,
        })
    }

    /// See [`crate::plan::Plan::memory`].
    pub fn memory(&self, weights: &[Weights]) -> Memory {
        let groups = groups::table(&self.gemm, weights, |group| self.workspace[group]);
        let mut tables = vec![0; self.places.end];
        let mut put = |place: usize, bytes: &[u8]| tables[place..place + bytes.len()].copy_from_slice(bytes);
        put(0, bytemuck::cast_slice(&groups));
        put(
            self.places.convert_offsets,
            bytemuck::cast_slice(&self.convert_offsets),
        );
        put(self.places.tiles, bytemuck::cast_slice(&self.tiles));
        put(self.places.offsets, bytemuck::cast_slice(&self.offsets));
        Memory {
            tables,
            maps: self.maps(),
            workspace_bytes: self.partials as usize + self.slots * self.geometry.partial_bytes(),
            counter_bytes: 4 * (COMMON_COUNTERS + self.slots * self.geometry.consumers),
        }
    }

    /// See [`crate::plan::Plan::launches`].
    pub fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.tiles.is_empty() {
            return Vec::new();
        }
        let table = |place: usize| addresses.tables + place as u64;
        let parameter = Parameter {
            tokens: addresses.tokens,
            token_scales: addresses.token_scales,
            output: addresses.output,
            groups: addresses.tables,
            maps: addresses.maps,
            tiles: table(self.places.tiles),
            offsets: table(self.places.offsets),
            convert_offsets: table(self.places.convert_offsets),
            workspace: addresses.workspace,
            partials: addresses.workspace + self.partials,
            counters: addresses.counters,
            group_count: self.gemm.groups.len() as u32,
            workers: self.workers,
            convert_items: self.convert_offsets.last().copied().unwrap_or(0),
            reserved: 0,
        };
        vec![Launch {
            grid: self.workers,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
        }]
    }

    fn maps(&self) -> Vec<Map> {
        // Every group has as many maps; those of second weights that are not there are never looked at.
        let matrices = [
            Matrix::Weights,
            Matrix::WeightScales,
            Matrix::SecondWeights,
            Matrix::SecondWeightScales,
        ];
        let groups = self.gemm.groups.iter().enumerate();
        groups
            .flat_map(|(group, shape)| {
                matrices.into_iter().map(move |matrix| {
                    let depth = depth(shape.k) as u64;
                    let (columns, box_columns) = match matrix {
                        Matrix::Weights | Matrix::SecondWeights => (depth / 2, CHUNK as u32 / 2),
                        // The least that a box's row may have: the scales of two chunks.
                        Matrix::WeightScales | Matrix::SecondWeightScales => (depth / 16, 16),
                    };
                    Map {
                        matrix,
                        group,
                        columns,
                        rows: shape.n as u64,
                        box_columns,
                        box_rows: self.geometry.block_rows.min(MOST_BOX_ROWS) as u32,
                    }
                })
            })
            .collect()
    }
}

impl Places {
    fn new(groups: usize, tiles: usize, offsets: usize) -> Self {
        let after = |begin: usize, bytes: usize| (begin + bytes).next_multiple_of(ALIGNMENT);
        let convert_offsets = after(0, groups * size_of::<Group>());
        let tiles_place = after(convert_offsets, (groups + 1) * size_of::<u32>());
        let offsets_place = after(tiles_place, tiles * size_of::<Tile>());
        Self {
            convert_offsets,
            tiles: tiles_place,
            offsets: offsets_place,
            end: after(offsets_place, offsets * size_of::<u32>()),
        }
    }
}

/// Where the partial sums of each split tile begin.
struct Slots {
    first: BTreeMap<(usize, usize), usize>,
    count: usize,
}

impl Slots {
    fn new(shares: &[Share]) -> Self {
        let split = shares
            .iter()
            .flatten()
            .filter(|piece| piece.parts > 1 && piece.part == 0);
        let parts: BTreeMap<_, _> = split
            .map(|piece| ((piece.kind, piece.block), piece.parts))
            .collect();
        let mut count = 0;
        let first = parts.into_iter().map(|(tile, parts)| {
            count += parts;
            (tile, count - parts)
        });
        Self {
            first: first.collect(),
            count,
        }
    }

    fn of(&self, piece: &Piece) -> u32 {
        self.first
            .get(&(piece.kind, piece.block))
            .map_or(WHOLE, |&slot| slot as u32)
    }
}

fn tile(piece: &Piece, kinds: &[Kind], geometry: &Geometry, slots: &Slots) -> Tile {
    let kind = &kinds[piece.kind];
    Tile {
        group: kind.group,
        row: (piece.block * geometry.block_rows) as u32,
        token: kind.token,
        width: kind.width,
        first_chunk: piece.first_chunk as u32,
        chunks: piece.chunks as u32,
        slot: slots.of(piece),
        parts: (piece.part | piece.parts << 16) as u32,
    }
}
