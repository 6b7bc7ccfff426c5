//! Building blocks of tile programs, and the pipelines that programs of several families are.
//!
//! What a block does for one tile depends on tile, stages, epilogue, roles and swap-AB. Order, lookup, setup, split-K and
//! cluster decide which tiles it is given, and how many.

mod blocks;
mod mma_sync;

pub use blocks::{
    Buffers, CONSUMER, CONVERTER, EVERYONE, PRODUCER, READERS, acquire, asynchronous, bulk_epilogue,
    bulk_load, bulk_producer, convert, first_loads, first_warp, loads_of_a_step, multiply, now, publish,
    publish_done, release, release_when_done, repeat, role, softmax_in_registers, stages, statements,
    storing_tiles, synchronise, wait_for, when,
};
pub use mma_sync::{Pipeline, multiplying_warps, warps_for_sums};
