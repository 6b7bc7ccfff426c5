//! The shape of a launch, and a block's place in it.

use super::WARP;
use crate::instruction::SPECIALS;

/// The shape of a launch, and the place of a block in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// The block's number in the grid.
    pub index: u32,
    /// Its number in its cluster.
    pub rank: u32,
    /// Blocks in a cluster.
    pub cluster: u32,
    /// The time.
    pub clock: u64,
}

/// The coordinates of a number in a box.
fn coordinates(number: u32, sides: [u32; 3]) -> [u64; 3] {
    let plane = (sides[0] * sides[1]).max(1);
    [
        number % sides[0].max(1),
        number % plane / sides[0].max(1),
        number / plane,
    ]
    .map(u64::from)
}

impl Shape {
    /// The special registers of a thread, each at the index of its [`Special`]. Kernels read them once, into registers of
    /// their own.
    #[cold]
    pub fn specials(self, thread: usize) -> [u64; SPECIALS] {
        let Self {
            grid,
            block,
            index,
            rank,
            cluster,
            clock,
        } = self;
        let [x, y, z] = coordinates(thread as u32, block);
        let [block_x, block_y, block_z] = coordinates(index, grid);
        let [threads_x, threads_y, threads_z] = block.map(u64::from);
        let [blocks_x, blocks_y, blocks_z] = grid.map(u64::from);
        let lane = (thread % WARP) as u64;
        [
            x,
            y,
            z,
            threads_x,
            threads_y,
            threads_z,
            block_x,
            block_y,
            block_z,
            blocks_x,
            blocks_y,
            blocks_z,
            lane,
            (thread / WARP) as u64,
            rank.into(),
            cluster.into(),
            block_x / u64::from(cluster),
            blocks_x / u64::from(cluster),
            clock,
        ]
    }
}
