//! The parts that the tiled kernels of grouped GEMM and attention share.
//!
//! [`check`] checks a schedule against the constraints of a device and searches for the nearest schedules that satisfy
//! them; [`program()`] writes a schedule out as the tile program that provers and simulators read. A family implements
//! [`TiledFamily`]; [`TiledSizes`] makes sizes of a task from it.

mod constraints;
mod program;
mod sizes;

pub use constraints::{accepts, check};
pub use program::program;
pub use sizes::{TiledFamily, TiledSizes, largest_ratio, operation, schedule, up_to};

use gauntlet_operations::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Maps, Order, Packing, Roles, Schedule,
    Scores, Tile, Values, resources,
};
