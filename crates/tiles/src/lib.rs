//! What the tiled kernels of grouped GEMM and attention share.
//!
//! [`check`] holds a schedule against the constraints of a device and searches the nearest schedules that keep them;
//! [`program()`] writes a schedule out as the tile program that provers and simulators read. A family implements
//! [`TiledFamily`]; [`TiledSizes`] makes sizes of a task out of it.

mod constraints;
mod program;
mod sizes;

pub use constraints::{accepts, check};
pub use program::program;
pub use sizes::{TiledFamily, TiledSizes, largest_ratio, operation, schedule, up_to};

use gauntlet_operations::{
    Arithmetic, Choice, Cluster, Epilogue, Exponential, Layout, Order, Packing, Roles, Schedule, Scores,
    Tile, Values, resources,
};
