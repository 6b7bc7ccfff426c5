//! Serves CUDA C++ kernels, compiled at run time, through the worker protocol.
//!
//! A kernel is a `__global__` function of a `.cu` file. The table beside it, `softmax.toml` for `softmax.cu`, says how
//! each kernel is launched, by the names of the task's tensors and sizes:
//!
//! ```toml
//! [softmax_kernel]
//! arguments = ["x", "y", "int rows", "int columns"]   # in order; a whole number's type may be left out
//! grid = ["ceil_div(rows, ROWS)"]                     # expressions over sizes and parameters; y and z are 1
//! block = [32, "ROWS"]
//! shared = "4 * ROWS"                                 # bytes of dynamic shared memory; 0 if left out
//! restrictions = ["32 * ROWS <= 1024"]
//!
//! [softmax_kernel.parameters]                         # macros of the compiler
//! ROWS = { values = [1, 2, 4, 8], default = 4, meaning = "rows of a block" }
//! ```
//!
//! [`KernelFile`] reads a kernel with its table. [`NvrtcHost`] runs it on a GPU of any architecture that the compiler
//! knows. [`InterpretedHost`] needs no GPU: it compiles for a given architecture, and runs small cases in the
//! interpreter of [`gauntlet_ptx`], which also finds races, accesses outside of tensors and elements that are never written.

mod compiled;
mod error;
mod file;
mod gpu;
mod headers;
mod interpreted;
mod launch;
mod table;

pub use error::KernelError;
pub use file::KernelFile;
pub use gpu::NvrtcHost;
pub use interpreted::{InterpretedHost, MAX_BYTES, MAX_THREADS};
pub use launch::LaunchPlan;
pub use table::KernelTable;
