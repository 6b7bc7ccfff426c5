//! What the swapped kernel and its plan agree on, byte for byte; the other half is in `kernels/swapped.cu`.

use bytemuck::{Pod, Zeroable};

/// [`Tile::slot`] of a tile that one worker computes over the whole depth.
pub const WHOLE: u32 = u32::MAX;

/// The kernel's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameter {
    pub tokens: u64,
    pub token_scales: u64,
    pub output: u64,
    pub groups: u64,
    pub maps: u64,
    pub tiles: u64,
    pub offsets: u64,
    pub convert_offsets: u64,
    pub workspace: u64,
    pub partials: u64,
    pub counters: u64,
    pub group_count: u32,
    pub workers: u32,
    pub convert_items: u32,
    pub reserved: u32,
}

/// A piece of work: weight rows against tokens over some of the depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// The group.
    pub group: u32,
    /// First weight row in the group; of each of the two weights in the dual form.
    pub row: u32,
    /// First token in the group, a multiple of 8.
    pub token: u32,
    /// Tokens, at most the schedule's `tile.n`.
    pub width: u32,
    /// First chunk of 128 values of the depth, even.
    pub first_chunk: u32,
    /// Chunks, even.
    pub chunks: u32,
    /// Index of the partial sums of the first part of this tile, or [`WHOLE`]; a part's own are at `slot + part`.
    pub slot: u32,
    /// This part in the low 16 bits, the number of parts in the high ones.
    pub parts: u32,
}
