//! The native kernel: Blackwell's matrix unit multiplies NVFP4 as it is. Tokens are the rows of a tile and weights its columns,
//! or with swap-AB the other way around.

mod geometry;
#[cfg(test)]
mod tests;

use gauntlet_problems::{GroupedGemm, Maps, Schedule};

use super::groups::{self, depth};
use super::tiled::Tiled;
use super::tiles::Tile;
use super::{
    Addresses, Element, Launch, Map, Matrix, Memory, Plan, PlanError, ScaleLayout, Swizzle, Target, Variant,
    Weights,
};
use geometry::Geometry;

/// Tensor maps of a group: tokens, weights, second weights. The plain form leaves the last unused.
const MAPS_A_GROUP: usize = 3;
/// Bytes of a tensor map (CUDA driver API, CUtensorMap).
const MAP_BYTES: usize = 128;

/// The layout of scales that the kernel reads.
const SCALES: ScaleLayout = ScaleLayout::Blocks;

/// A problem for the native kernel.
#[derive(Debug)]
pub struct NativePlan {
    tiled: Tiled,
    geometry: Geometry,
    variant: Variant,
    made: Maps,
}

impl NativePlan {
    /// Plans a valid problem for a GPU.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        PlanError::unless_nvfp4(gemm, "native")?;
        let geometry = Geometry::new(gemm, schedule, target)?;
        Ok(Self {
            tiled: Tiled::new(gemm, schedule, target.processors)?,
            variant: geometry.variant(gemm, schedule),
            geometry,
            made: schedule.maps,
        })
    }

    /// The tiles in the order in which blocks take them; each is repeated for every part of its depth.
    pub fn tiles(&self) -> &[Tile] {
        self.tiled.tiles()
    }

    /// The maps that the host makes: of all groups, or of one whose maps each block changes. Maps of a group without tokens
    /// are empty, so that one with tokens is taken.
    fn maps(&self) -> Vec<Map> {
        let gemm = &self.tiled.gemm;
        let table = groups::table(gemm, SCALES, &[], |_| 0);
        let of_group = |(group, (shape, entry)): (usize, (&gauntlet_problems::GemmShape, &super::Group))| {
            let map = |matrix, rows: usize, offset: u64, is_row: bool| Map {
                matrix,
                group,
                offset,
                element: Element::Byte,
                sizes: vec![depth(shape.k) as u64 / 2, rows as u64],
                boxes: vec![
                    self.geometry.row_bytes() as u32,
                    self.geometry.box_rows(is_row) as u32,
                ],
                swizzle: match self.geometry.row_bytes() {
                    128 => Swizzle::Bytes128,
                    _ => Swizzle::Bytes64,
                },
            };
            let tokens_are_rows = !self.geometry.swapped();
            let maps: [Map; MAPS_A_GROUP] = [
                map(Matrix::Tokens, shape.m, entry.tokens, tokens_are_rows),
                map(Matrix::Weights, shape.n, 0, !tokens_are_rows),
                map(Matrix::SecondWeights, shape.n, 0, !tokens_are_rows),
            ];
            maps
        };
        let groups = gemm.groups.iter().zip(&table).enumerate();
        match self.made {
            Maps::Prebuilt => groups.flat_map(of_group).collect(),
            Maps::PerBlock => groups
                .filter(|(_, (shape, _))| shape.m > 0)
                .take(1)
                .flat_map(of_group)
                .collect(),
        }
    }

    /// Bytes of the maps that blocks make.
    fn own_map_bytes(&self) -> usize {
        match self.made {
            Maps::Prebuilt => 0,
            Maps::PerBlock => self.tiled.blocks() * MAPS_A_GROUP * MAP_BYTES,
        }
    }
}

impl Plan for NativePlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, weights: &[Weights]) -> Memory {
        let sums = (self.geometry.sum_bytes(), self.geometry.storing_warps());
        let memory = self.tiled.memory(SCALES, weights, self.maps(), sums);
        Memory {
            workspace_bytes: memory.workspace_bytes + self.own_map_bytes(),
            ..memory
        }
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        self.tiled.launches(addresses)
    }
}
