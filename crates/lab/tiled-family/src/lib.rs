//! The parts that families of tiled kernels share.
//!
//! A family implements [`TiledFamily`]: [`TiledSizes`] makes sizes of a task from it, [`check`] checks a schedule against
//! its constraints on a device and searches for the nearest schedules that satisfy them. [`constraints`] holds the
//! engine with the rules that follow from a device alone, [`program`] the building blocks of tile programs.
//!
//! ```
//! use gauntlet_device::Device;
//! use gauntlet_gemm::GemmFamily;
//! use gauntlet_problems::{Form, GroupedGemm, Operation, Schedule};
//! use gauntlet_tiled_family::{accepts, check};
//!
//! let b200 = Device::builtin("b200")?;
//! let gemm = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[128, 4096, 1536]]));
//! let deep = Schedule { stages: 7, ..Schedule::baseline() };
//! let violations = check::<GemmFamily>(&deep, &gemm, &b200);
//! assert_eq!(violations[0].parameter, "stages");
//!
//! let remedy = Schedule::of(&violations[0].remedies[0].parameters)?;
//! assert!(accepts::<GemmFamily>(&remedy, &gemm, &b200));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod constraints;
pub mod program;
mod sizes;

pub use constraints::{accepts, check};
pub use sizes::{TiledFamily, TiledSizes, largest_ratio, operation, up_to};
