//! The binary interface of the swapped kernel, its token conversion kernel, and their plan; the other half is in
//! `kernels/swapped_problem.cuh`.

use bytemuck::{Pod, Zeroable};

/// [`Tile::slot`] of a tile that one worker computes over the whole depth.
pub const WHOLE: u32 = u32::MAX;

/// In the kernel's table, the bit of [`Tile::parts`] that marks a worker's last tile.
pub(super) const LAST: u32 = 1 << 31;

/// Most groups whose sizes are stored in the parameter: reading them from memory at the start of a call costs
/// microseconds.
pub(super) const INLINE_GROUPS: usize = 16;

/// The parameter of both kernels.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameter {
    pub tokens: u64,
    pub token_scales: u64,
    pub output: u64,
    pub group_table: u64,
    pub item_table: u64,
    pub map_table: u64,
    pub tiles: u64,
    pub workspace: u64,
    pub partials: u64,
    pub counters: u64,
    pub tiles_a_worker: u32,
    pub group_count: u32,
    /// Items to convert, of 8 tokens by 128 values.
    pub items: u32,
    /// Blocks of weight rows of a group; only of a [`RoutedPlan`](super::RoutedPlan).
    pub weight_blocks: u32,
    pub inline: Inline,
    pub routed: Routed,
}

/// What the kernels plan by on the device; zero for other plans.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Routed {
    pub ends: u64,
    pub costs: u64,
    /// Rows of tokens of all groups.
    pub rows: u32,
    /// Most parts of a tile's depth.
    pub most_parts: u32,
    /// 1 if launches before the one before wrote the ends.
    pub ends_are_ready: u32,
    pub bias_format: u32,
    pub biases: [u64; 2],
    pub alpha: f32,
    pub beta: f32,
    pub limit: f32,
    pub reserved: u32,
}

/// What a tile of some width costs in whole units: its tile, a part of it besides its chunks, two chunks, and a part for each part
/// beyond two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Cost {
    pub whole: u32,
    pub part: u32,
    pub pair: u32,
    pub further: u32,
}

/// The groups, if the parameter has room for them; zero otherwise, and beyond the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Inline {
    pub shapes: [Shape; INLINE_GROUPS],
    /// Where each group's items begin, and where the last ones end.
    pub item_offsets: [u32; INLINE_GROUPS + 1],
    pub reserved: u32,
}

/// The sizes and places of a group: the numbers of the same names in [`Group`](crate::plan::Group).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Shape {
    pub tokens: u64,
    pub token_scales: u64,
    pub output: u64,
    pub workspace: u64,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub columns: u32,
}

/// A piece of work: weight rows against tokens over a range of the depth. In the kernel's table each worker has a row:
/// its pieces first, then zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// The group.
    pub group: u32,
    /// First weight row in the group; of each of the two weights in the dual form.
    pub row: u32,
    /// First token in the group, a multiple of 8. On the device it counts over all groups.
    pub token: u32,
    /// Tokens, at most the schedule's `tile.n`.
    pub width: u32,
    /// First chunk of 128 values of the depth, even.
    pub first_chunk: u32,
    /// Chunks, even; 0 in a worker's first tile means that the worker has no tiles.
    pub chunks: u32,
    /// Index of the partial sums of the first part of this tile, or [`WHOLE`]; a part's own are at `slot + part`.
    pub slot: u32,
    /// This part in the low 16 bits, the number of parts in the 15 above; in the kernel's table the top bit marks a
    /// worker's last tile.
    pub parts: u32,
}
