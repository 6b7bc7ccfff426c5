//! Kinds of tiles, and clusters of blocks.

use gauntlet_device::Arch;
use gauntlet_problems::Schedule;

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
