//! The interface between the engine and a kernel family: a plan, a workspace, and the work of one call.

use gauntlet_problems::Schedule;
use gauntlet_problems::{AttentionInputs, Output};

use crate::driver::{Space, Team, TileWork};
use crate::error::{BuildError, RunError};
use crate::gemm::GemmOperands;
use crate::memory::OutOfMemory;
use crate::simd::Instructions;

/// The maximum number of tiles; beyond 16 million, the tables alone would cost more than the arithmetic.
const TILE_LIMIT: usize = 1 << 24;

/// The engine's settings that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub instructions: Instructions,
    pub schedule: &'a Schedule,
}

/// The operands of one call, of either family.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operands<'a> {
    GroupedGemm(&'a [GemmOperands<'a>]),
    Attention(&'a AttentionInputs),
}

/// A problem cut into tiles: everything that depends on shapes only.
pub(crate) trait Plan: Sized {
    /// Memory that all threads share.
    type Shared;
    /// Memory of one thread.
    type State: Send;
    /// The work of one call.
    type Work<'a>: TileWork<State = Self::State>
    where
        Self: 'a;

    /// The number of tiles; the parts of split tiles count separately.
    fn tiles(&self) -> usize;
    /// The cost of each tile in multiply-adds.
    fn costs(&self) -> Vec<u64>;
    /// Rows and columns of the register block, and the vector registers that hold its sums.
    fn register_block(&self) -> ([usize; 2], usize);
    /// Words of one panel slot.
    fn panel_values(&self) -> usize;
    /// Bytes of `Shared` and of one `State`.
    fn workspace_bytes(&self) -> (usize, usize);
    /// Makes the shared memory.
    fn allocate_shared(&self) -> Result<Self::Shared, OutOfMemory>;
    /// Makes one thread's memory.
    fn allocate_state(&self) -> Result<Self::State, OutOfMemory>;
    /// Combines plan, memory and operands into the work of one call.
    fn work<'a>(
        &'a self,
        shared: &'a mut Self::Shared,
        operands: Operands<'a>,
        output: &'a mut Output,
    ) -> Result<Self::Work<'a>, RunError>;

    /// Makes the driver's workspace.
    fn allocate_space(&self, team: &Team, stages: usize) -> Result<Space<Self::State>, OutOfMemory> {
        Space::allocate(team, stages, self.panel_values(), || self.allocate_state())
    }
}

/// The last of the parts that begins at or before a tile, which is the one that holds it: a part without tiles begins where the
/// next one does. The first begins at 0.
pub(crate) fn last_begun<P>(parts: &[P], first_tile: impl Fn(&P) -> usize, tile: usize) -> usize {
    parts
        .partition_point(|part| first_tile(part) <= tile)
        .saturating_sub(1)
}

/// Refuses more tiles than the tables may hold.
pub(crate) fn limit_tiles(tiles: usize) -> Result<(), BuildError> {
    if tiles > TILE_LIMIT {
        return Err(BuildError::TooManyTiles {
            tiles,
            limit: TILE_LIMIT,
        });
    }
    Ok(())
}

/// The share of `total` that slice `slice` of `slices` gets.
pub(crate) fn share(total: usize, slice: usize, slices: usize) -> std::ops::Range<usize> {
    let cut = |slice: usize| (total as u128 * slice as u128 / slices as u128) as usize;
    cut(slice)..cut(slice + 1)
}
