//! The rows kernel: tokens are the rows of a tile, weights its columns. Every parameter of a schedule is a switch of
//! this kernel, so that the steps from plain tiles to specialised warps can be compared one by one.

mod geometry;
#[cfg(test)]
mod tests;
mod tiles;

use bytemuck::{Pod, Zeroable};
use gauntlet_operations::GroupedGemm;
use gauntlet_operations::{Lookup, Order, Schedule};

use super::groups::{self, check_sizes, check_tiles, depth, within};
use super::{Addresses, Launch, Map, Matrix, Memory, Pass, Plan, PlanError, Variant, Weights};
use geometry::Geometry;
pub use tiles::Tile;
use tiles::Tiles;

/// Deepest K: the bytes of a tile's rows are counted in 32 bits.
const MOST_DEPTH: usize = 1 << 24;

/// A problem for the rows kernel.
#[derive(Debug)]
pub struct RowsPlan {
    gemm: GroupedGemm,
    geometry: Geometry,
    variant: Variant,
    tiles: Tiles,
    split_k: usize,
    blocks: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Parameter {
    tokens: u64,
    token_scales: u64,
    output: u64,
    groups: u64,
    order: u64,
    maps: u64,
    workspace: u64,
    counters: u64,
    tiles: u32,
    reserved: u32,
}

impl RowsPlan {
    /// Plans a valid problem for a device with `processors` multiprocessors.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> Result<Self, PlanError> {
        PlanError::unless_nvfp4(gemm, "rows")?;
        check_sizes(gemm)?;
        for (index, shape) in gemm.groups.iter().enumerate() {
            within(format!("K of group {index}"), depth(shape.k), MOST_DEPTH)?;
        }
        let geometry = Geometry::new(gemm, schedule)?;
        let count = tiles::count(gemm, schedule.tile);
        check_tiles(count.saturating_mul(schedule.split_k))?;
        let work = count * schedule.split_k;
        Ok(Self {
            gemm: gemm.clone(),
            variant: geometry.variant(gemm, schedule),
            geometry,
            tiles: Tiles::new(gemm, schedule),
            split_k: schedule.split_k,
            blocks: match schedule.order {
                Order::PerTile => work,
                Order::Static | Order::Sorted | Order::Dynamic => work.min(processors.max(1) as usize),
            },
        })
    }

    /// The tiles in the order in which blocks take them; each is repeated for every part of its depth.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles.list
    }

    /// Four a group, so that the kernel finds them by the group's number; in the plain form the first weights fill the
    /// places of the second.
    fn maps(&self) -> Vec<Map> {
        let second = match self.geometry.matrices {
            1 => [Matrix::Weights, Matrix::WeightScales],
            _ => [Matrix::SecondWeights, Matrix::SecondWeightScales],
        };
        let matrices = [Matrix::Weights, Matrix::WeightScales, second[0], second[1]];
        let groups = self.gemm.groups.iter().enumerate();
        groups
            .flat_map(|(group, shape)| {
                let depth = depth(shape.k) as u64;
                matrices.map(|matrix| {
                    let (columns, box_columns) = match matrix {
                        Matrix::Weights | Matrix::SecondWeights => (depth / 2, self.geometry.packed_row()),
                        _ => (depth / 16, geometry::SCALE_ROW),
                    };
                    let boxes = [box_columns as u32, self.geometry.tile.n as u32];
                    Map::of_bytes(matrix, group, [columns, shape.n as u64], boxes)
                })
            })
            .collect()
    }
}

impl Plan for RowsPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        let order = match self.tiles.lookup {
            Lookup::Precomputed => bytemuck::cast_slice(&self.tiles.list),
            Lookup::Linear => bytemuck::cast_slice(&self.tiles.numbers),
        };
        let tiles = self.tiles.list.len();
        let (parts, split_tiles) = match self.split_k {
            1 => (0, 0),
            parts => (parts * tiles, tiles),
        };
        Memory {
            tables: groups::table_and(&self.gemm, weights, order),
            maps: self.maps(),
            workspace_bytes: parts * self.geometry.sum_bytes(),
            // The first is the order's; then one for each warp of a split tile.
            counter_bytes: 4 * (1 + split_tiles * self.geometry.multiplying_warps()),
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.blocks == 0 {
            return Vec::new();
        }
        let parameter = Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            groups: addresses.tables,
            order: addresses.tables + groups::table_end(&self.gemm) as u64,
            maps: addresses.maps,
            workspace: addresses.workspace,
            counters: addresses.counters,
            tiles: self.tiles.list.len() as u32,
            reserved: 0,
        };
        vec![Launch {
            pass: Pass::Main,
            grid: self.blocks as u32,
            cluster: 1,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
        }]
    }
}
