//! The parts that families of tiled kernels share.
//!
//! A family implements [`TiledFamily`]: [`TiledSizes`] makes sizes of a task from it, [`check`] checks a schedule against
//! its constraints on a device and searches for the nearest schedules that satisfy them. [`constraints`] holds the
//! engine with the rules that follow from a device alone, [`program`] the building blocks of tile programs.

pub mod constraints;
pub mod program;
mod sizes;

pub use constraints::{accepts, check};
pub use sizes::{TiledFamily, TiledSizes, largest_ratio, operation, up_to};
