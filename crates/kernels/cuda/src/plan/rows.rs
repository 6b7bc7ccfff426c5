//! The rows kernel: tokens are the rows of a tile, weights its columns. Every parameter of a schedule is a switch of
//! this kernel, so that the steps from plain tiles to specialised warps can be compared one by one.

mod geometry;
#[cfg(test)]
mod tests;

use gauntlet_problems::{GroupedGemm, Schedule};

use super::groups::depth;
use super::tiled::Tiled;
use super::tiles::Tile;
use super::{Addresses, Launch, Map, Matrix, Memory, Plan, PlanError, ScaleLayout, Variant, Weights};
use geometry::Geometry;

/// A problem for the rows kernel.
#[derive(Debug)]
pub struct RowsPlan {
    tiled: Tiled,
    geometry: Geometry,
    variant: Variant,
}

impl RowsPlan {
    /// Plans a valid problem for a device with `processors` multiprocessors.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> Result<Self, PlanError> {
        PlanError::unless_nvfp4(gemm, "rows")?;
        let geometry = Geometry::new(gemm, schedule)?;
        Ok(Self {
            tiled: Tiled::new(gemm, schedule, processors)?,
            variant: geometry.variant(gemm, schedule),
            geometry,
        })
    }

    /// The tiles in the order in which blocks take them; each is repeated for every part of its depth.
    pub fn tiles(&self) -> &[Tile] {
        self.tiled.tiles()
    }

    /// Four a group, so that the kernel finds them by the group's number; in the plain form the first weights fill the
    /// places of the second.
    fn maps(&self) -> Vec<Map> {
        let second = match self.geometry.matrices {
            1 => [Matrix::Weights, Matrix::WeightScales],
            _ => [Matrix::SecondWeights, Matrix::SecondWeightScales],
        };
        let matrices = [Matrix::Weights, Matrix::WeightScales, second[0], second[1]];
        let groups = self.tiled.gemm.groups.iter().enumerate();
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
        let sums = (self.geometry.sum_bytes(), self.geometry.multiplying_warps());
        self.tiled.memory(ScaleLayout::Rows, weights, self.maps(), sums)
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        self.tiled.launches(addresses)
    }
}
