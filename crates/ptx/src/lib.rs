//! Runs PTX kernels without a GPU, to see whether they compute what they should.
//!
//! All threads of all blocks of a launch run at once, one instruction after another, in an order drawn from a seed: which warp goes
//! on for how long, and when a copy that was asked for lands, differs from seed to seed. So a kernel that reads before it has
//! waited, or gives away a buffer that is still read, is seen in its results, or named: an access outside of what was allocated
//! or across an alignment, a launch whose threads all wait, an operand that changes while the matrix unit may still read it.
//!
//! What is not seen: what the assembler makes of the PTX, fences that are missing between ordinary accesses, and time. Instructions
//! are those of sm_90a that Gauntlet's kernels use; any other is refused by name when a kernel is read. Their meaning is that of
//! NVIDIA's "Parallel Thread Execution ISA".

mod block;
mod collective;
mod copies;
mod decode;
mod fault;
mod functions;
mod instruction;
mod launch;
mod matrix;
mod memory;
mod module;
mod text;
mod thread;

pub use copies::{Swizzle, TensorMap};
pub use fault::{Fault, ReadError};
pub use launch::{Launch, run};
pub use memory::Memory;
pub use module::Kernel;
