//! The tiles of a grouped GEMM: the number of each kind, their order, and the share of their reads that hits a cache.

use gauntlet_problems::resources::weights;
use gauntlet_problems::{GroupedGemm, Schedule, Tile};
use gauntlet_simulate::gpu::{Bundle, Kind};
use gauntlet_simulate::tiles::Class;

use super::PACKED;

pub(super) fn classes(gemm: &GroupedGemm, schedule: &Schedule) -> Vec<Class> {
    let Tile { m, n, k } = schedule.tile;
    gemm.groups
        .iter()
        .map(|shape| {
            let (rows, columns) = if schedule.swap_ab {
                (shape.n, shape.m)
            } else {
                (shape.m, shape.n)
            };
            let steps = shape.k.div_ceil(k).div_ceil(schedule.split_k);
            Class {
                count: rows.div_ceil(m) * columns.div_ceil(n) * schedule.split_k,
                steps,
                flops: 2.0 * weights(gemm) as f64 * (m * n) as f64 * (steps * k) as f64,
            }
        })
        .filter(|class| class.count > 0)
        .collect()
}

pub(super) fn kinds(
    gemm: &GroupedGemm,
    schedule: &Schedule,
    bundle: Bundle,
    cache: f64,
    clusters: usize,
) -> Vec<Kind> {
    let Tile { m, n, k } = schedule.tile;
    let mut kinds = Vec::new();
    for (group, shape) in gemm.groups.iter().enumerate() {
        let (rows, columns) = if schedule.swap_ab {
            (shape.n, shape.m)
        } else {
            (shape.m, shape.n)
        };
        let (row_tiles, column_tiles) = (rows.div_ceil(m), columns.div_ceil(n));
        let tiles = row_tiles * column_tiles;
        if tiles == 0 {
            continue;
        }
        let (row_clusters, column_clusters) = (
            row_tiles.div_ceil(bundle.rows),
            column_tiles.div_ceil(bundle.columns),
        );
        let count = row_clusters * column_clusters * schedule.split_k;
        let steps = shape.k.div_ceil(k).div_ceil(schedule.split_k);
        let at_once = (clusters * bundle.rows * bundle.columns / schedule.split_k).max(1);
        let reuse = Reuse {
            row_tiles,
            column_tiles,
            row_bytes: rows as f64 * shape.k as f64 * PACKED,
            column_tile_bytes: n as f64 * shape.k as f64 * PACKED * weights(gemm) as f64,
            at_once,
            cache,
        };
        kinds.push(Kind {
            count,
            filled: (tiles * schedule.split_k) as f64 / (count * bundle.rows * bundle.columns) as f64,
            group,
            steps,
            depth: shape.k as f64 / (steps * schedule.split_k).max(1) as f64,
            rows: rows as f64 / row_tiles as f64,
            columns: columns as f64 / column_tiles as f64,
            rows_from_memory: reuse.rows_from_memory(),
            columns_from_memory: reuse.columns_from_memory(),
            cold: reuse.cold(),
        });
    }
    kinds
}

/// The cache hits of a group's tiles, processed column by column.
struct Reuse {
    row_tiles: usize,
    column_tiles: usize,
    row_bytes: f64,
    column_tile_bytes: f64,
    at_once: usize,
    cache: f64,
}

impl Reuse {
    /// Columns of tiles that run at the same time, at least one.
    fn columns_at_once(&self) -> usize {
        (self.at_once / self.row_tiles).clamp(1, self.column_tiles)
    }

    /// All rows are read again for each column of tiles; they are in the cache if all data used in between fit.
    fn rows_from_memory(&self) -> f64 {
        let between = self.row_bytes + self.columns_at_once() as f64 * self.column_tile_bytes;
        let times = if between <= self.cache {
            1
        } else {
            self.column_tiles.div_ceil(self.columns_at_once())
        };
        times as f64 / self.column_tiles as f64
    }

    /// A column is read by the tiles of all rows, which run at the same time or soon after each other.
    fn columns_from_memory(&self) -> f64 {
        let times = if self.row_bytes <= self.cache {
            1
        } else {
            self.row_tiles.div_ceil(self.at_once)
        };
        times as f64 / self.row_tiles as f64
    }

    /// Tiles that run at the same time all wait for memory if one of them reads new data.
    fn cold(&self) -> f64 {
        let of_columns = (self.at_once as f64 / self.row_tiles as f64).min(1.0);
        let of_rows = (self.columns_at_once() as f64 / self.column_tiles as f64).min(1.0);
        1.0 - (1.0 - of_columns) * (1.0 - of_rows)
    }
}
