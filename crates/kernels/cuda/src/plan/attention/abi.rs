//! The binary interface between host and attention kernels; the other half is `kernels/attention.cuh`.

use bytemuck::{Pod, Zeroable};

/// A batch element; heads lie one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Sequence {
    /// The row of Q, and of the output, where its first head begins.
    pub query_row: u32,
    /// The row of K, and of V, where its first key head begins.
    pub key_row: u32,
    /// Query positions.
    pub queries: u32,
    /// Key positions.
    pub keys: u32,
}

/// A unit of work: a range of queries of one head, or of the rows of all heads that share a key head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tile {
    /// The batch element.
    pub sequence: u32,
    /// The query head, or the key head whose query heads are packed.
    pub head: u32,
    /// Its first query, or row.
    pub query: u32,
    /// How many there are.
    pub queries: u32,
}

/// The first scales of a batch element, if blocks of positions have scales of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FirstScales {
    /// The scale of Q of its first head's first block.
    pub query: u32,
    /// The scale of K, and of V, likewise.
    pub key: u32,
}

/// The kernels' parameter.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameter {
    pub operands: [u64; 3],
    pub scales: [u64; 3],
    pub output: u64,
    pub sequences: u64,
    pub tiles: u64,
    pub maps: u64,
    pub counters: u64,
    pub workspace: u64,
    pub tile_count: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// log₂ e / √(head size), times the scales of Q and K if they are numbers.
    pub scale: f32,
    /// Query and key positions of every sequence if all are equal; else 0.
    pub queries: u32,
    pub keys: u32,
    pub first_scales: u64,
    /// Parts of a tile's keys, at most.
    pub parts: u32,
    /// From a head's scales to the next head's; 0 if all heads share one.
    pub scale_step: u32,
    /// The scale of V if it is a number; else 1.
    pub value_scale: f32,
    /// Query heads whose queries are the rows of one of `heads`.
    pub row_heads: u32,
}
