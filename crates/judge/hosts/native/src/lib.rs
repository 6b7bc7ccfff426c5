//! What the hosts of compiled kernels share.
//!
//! A host runs a kernel that somebody else compiled: a function of a shared library, or CUDA C++. It knows the kernel's
//! [arguments](Argument) by the names of a case's tensors and sizes, and owns memory, clock and loop:
//!
//! 1. [`HostService`] answers the worker protocol, reads operands from files and keeps the result of every call;
//! 2. for each call, [`CpuPlace`] or [`CudaPlace`] copies the inputs to addresses that the kernel has not seen for this
//!    call, poisons the outputs, and takes the time around a [`Call`];
//! 3. a [`Host`] turns a build request into something that can be called.
//!
//! Numbers in tables, such as a launch's grid, are [expressions](gauntlet_task::Expression) over a case's sizes.
//!
//! ```
//! use gauntlet_host_native::{Argument, Bound};
//! use gauntlet_task::Scope;
//!
//! let case = Scope::default().with("rows", 512);
//! let blocks: Argument = "int ceil_div(rows, 100)".parse()?;
//! let Bound::Value(passed) = blocks.bind(&case)? else {
//!     panic!("a size is passed as a value");
//! };
//! assert_eq!(u64::from_le_bytes(passed.bytes), 6);
//!
//! // A name that the case does not have is told with those that it has.
//! let unknown = "int row".parse::<Argument>()?.bind(&case);
//! assert!(unknown.unwrap_err().message.contains("rows"));
//! # Ok::<(), gauntlet_host_native::ArgumentError>(())
//! ```

mod arguments;
mod cpu;
mod cuda;
mod evict;
mod hold;
mod opener;
mod operands;
mod service;
mod staging;
mod tracing;

pub use arguments::{Argument, ArgumentError, Bound, Passed, STREAM};
pub use cpu::CpuPlace;
pub use cuda::{CudaPlace, driver_failure};
pub use operands::Operands;
pub use service::{Addresses, Call, Host, HostService, Planned, bad_request, broken, racy, refused};
