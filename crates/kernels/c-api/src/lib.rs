//! The kernels behind a C interface. `include/gauntlet.h` is its documentation; this crate keeps to it.
//!
//! Objects are boxes that C holds as pointers. A function that can fail returns a [`Status`]; the words of the error wait
//! in the calling thread for `gauntlet_error`. A panic is an error like any other.

mod cpu;
mod cuda;
mod matrix;
mod packing;
mod status;
mod words;

pub use status::Status;
