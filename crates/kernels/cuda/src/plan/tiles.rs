//! Which tiles there are, and in which order blocks take them, for kernels whose blocks each compute one tile of any group at a
//! time (`kernels/work.cuh`).

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::{GemmShape, GroupedGemm};
use gauntlet_problems::{Lookup, Order, Schedule};

use crate::plan::groups::{self, Cuts, depth};

/// A block of output, as in the kernel's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// The group.
    pub group: u32,
    /// First row of the tile in the group: a token, or with swap-AB a weight row.
    pub row: u32,
    /// First column: a weight row, or with swap-AB a token.
    pub column: u32,
    /// Steps of its depth.
    pub steps: u32,
}

/// The tiles of a problem.
#[derive(Debug)]
pub(super) struct Tiles {
    /// In the order in which blocks take them.
    pub list: Vec<Tile>,
    /// Their numbers in the order of groups, from which the kernel finds them without a table; empty if the two orders
    /// are the same.
    pub numbers: Vec<u32>,
    /// Which of the two the kernel reads.
    pub lookup: Lookup,
}

impl Tiles {
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule) -> Self {
        let in_groups = in_groups(gemm, schedule);
        if matches!(schedule.order, Order::PerTile | Order::Static) {
            return Self {
                list: in_groups,
                numbers: Vec::new(),
                lookup: schedule.lookup,
            };
        }
        // A tile is computed whole even at the edges of a group, so its depth is its cost. The sort is stable: tiles of
        // one cost stay beside those that share their weights.
        let mut numbers: Vec<u32> = (0..in_groups.len() as u32).collect();
        numbers.sort_by_key(|&number| std::cmp::Reverse(in_groups[number as usize].steps));
        Self {
            list: numbers.iter().map(|&number| in_groups[number as usize]).collect(),
            numbers,
            lookup: schedule.lookup,
        }
    }
}

/// How many there are, without making them.
pub(super) fn count(gemm: &GroupedGemm, schedule: &Schedule) -> usize {
    groups::corner_count(gemm, cuts(schedule))
}

/// Group after group; in each along its tokens first, so that neighbours share weights.
fn in_groups(gemm: &GroupedGemm, schedule: &Schedule) -> Vec<Tile> {
    let tiles = groups::corners(gemm, cuts(schedule)).map(|(group, shape, [weight, token])| {
        let (row, column) = if schedule.swap_ab {
            (weight, token)
        } else {
            (token, weight)
        };
        Tile {
            group: group as u32,
            row: row as u32,
            column: column as u32,
            steps: (depth(shape.k) / schedule.tile.k) as u32,
        }
    });
    tiles.collect()
}

fn cuts(schedule: &Schedule) -> impl Fn(&GemmShape) -> Cuts {
    let tile = schedule.tile;
    let (weights, tokens) = if schedule.swap_ab {
        (tile.m, tile.n)
    } else {
        (tile.n, tile.m)
    };
    move |shape| [(shape.n, weights), (shape.m, tokens)]
}
