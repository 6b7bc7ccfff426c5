//! The tiles of a problem: the number of each kind, their order, and the share of their reads that hits a cache.

use gauntlet_device::Arch;
use gauntlet_operations::resources::{head_sets, most_visible, weights};
use gauntlet_operations::{Attention, GroupedGemm, Operation};
use gauntlet_operations::{Schedule, Tile};

use crate::Problem;

/// Bytes of a packed NVFP4 value with its share of a scale.
pub(crate) const PACKED: f64 = 0.5 + 1.0 / 16.0;

/// How blocks are grouped: a cluster shares loads, and a `tcgen05` pair shares a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle {
    /// Multiprocessors that one tile spans.
    pub pair: usize,
    /// Tiles of a cluster along rows.
    pub rows: usize,
    /// Tiles of a cluster along columns.
    pub columns: usize,
}

impl Bundle {
    /// The bundle of a schedule.
    pub fn of(schedule: &Schedule, arch: Arch) -> Self {
        let cluster = schedule.cluster;
        let pair = if arch == Arch::Sm100a && cluster.m.is_multiple_of(2) {
            2
        } else {
            1
        };
        Self {
            pair,
            rows: (cluster.m / pair).max(1),
            columns: cluster.n.max(1),
        }
    }

    /// Multiprocessors of a cluster.
    pub fn processors(self) -> usize {
        self.pair * self.rows * self.columns
    }
}

/// Consecutive clusters of equal tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// Clusters.
    pub count: usize,
    /// Existing tiles of a cluster, divided by its capacity.
    pub filled: f64,
    /// The group or sequence.
    pub group: usize,
    /// Steps of each tile.
    pub steps: usize,
    /// The average depth of a step along the summed dimension without padding: values of K, or keys.
    pub depth: f64,
    /// The average number of a tile's rows without padding.
    pub rows: f64,
    /// The same for columns (of attention: the head).
    pub columns: f64,
    /// The fraction of the bytes of rows that come from memory rather than the second-level cache.
    pub rows_from_memory: f64,
    /// The same for columns (of attention: keys and values).
    pub columns_from_memory: f64,
    /// The fraction of tiles that wait for memory because their data are read for the first time.
    pub cold: f64,
}

/// The kinds in the order of the groups. `cache` is the size of the second-level cache in bytes, `clusters` the number
/// of clusters that run at a time.
pub fn kinds(
    problem: &Problem,
    schedule: &Schedule,
    bundle: Bundle,
    cache: f64,
    clusters: usize,
    arch: Arch,
) -> Vec<Kind> {
    match problem.operation() {
        Operation::GroupedGemm(gemm) => gemm_kinds(gemm, schedule, bundle, cache, clusters),
        Operation::Attention(attention) => attention_kinds(attention, schedule, bundle, arch),
    }
}

fn gemm_kinds(
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

fn attention_kinds(attention: &Attention, schedule: &Schedule, bundle: Bundle, arch: Arch) -> Vec<Kind> {
    let Tile { m, n, .. } = schedule.tile;
    let sets = head_sets(schedule, attention, arch);
    let mut kinds: Vec<Kind> = Vec::new();
    for (group, sequence) in attention.sequences.iter().enumerate() {
        let rows = sequence.queries * sets.heads;
        let blocks = rows.div_ceil(m);
        let readers = blocks * sets.count / attention.kv_heads.max(1);
        for block in 0..blocks {
            let visible = most_visible(attention, *sequence, block * m..((block + 1) * m).min(rows));
            let steps = visible.div_ceil(n).div_ceil(schedule.split_k);
            let count = (sets.count * schedule.split_k).div_ceil(bundle.rows * bundle.columns);
            if let Some(previous) = kinds
                .last_mut()
                .filter(|kind| kind.group == group && kind.steps == steps)
            {
                previous.count += count;
                continue;
            }
            kinds.push(Kind {
                count,
                filled: (sets.count * schedule.split_k) as f64
                    / (count * bundle.rows * bundle.columns) as f64,
                group,
                steps,
                depth: visible as f64 / (steps * schedule.split_k).max(1) as f64,
                rows: rows as f64 / blocks as f64,
                columns: attention.head_size as f64,
                rows_from_memory: 1.0,
                // The blocks of a head read its keys and values one after another.
                columns_from_memory: 1.0 / readers as f64,
                cold: 1.0,
            });
        }
    }
    kinds
}
