//! Serves C functions of shared libraries, and of sources in C and C++, through the worker protocol.
//!
//! A function takes pointers, sizes and a stream, and returns nothing or an `int`. Its arguments are, unless a table or
//! an option names others: the task's inputs, its outputs, the case's size (`int64_t`), and on CUDA the stream.
//!
//! ```c
//! void scale(const float *x, float *y, int64_t count);
//! ```
//!
//! A table beside the library, `libscale.toml` for `libscale.so`, has one entry for each function that needs one:
//!
//! ```toml
//! [scale]
//! arguments = ["x", "y", "elements(x)"]
//! returns = "int"      # 0: it succeeded; "void" if left out
//! device = "cuda"      # pointers are to memory of the GPU; "cpu" if left out
//! ```
//!
//! A source is compiled to a library with the values of its parameters, which its table declares, as macros. The library
//! is loaded into the worker's process, which is confined and owns memory, clock and loop
//! ([`gauntlet_host_native`]).

mod function;
mod host;
mod signature;
mod source;
mod table;

pub use function::Function;
pub use host::{LibraryHost, LibraryOptions};
pub use table::{FunctionTable, LibraryError, Returns, Target};
