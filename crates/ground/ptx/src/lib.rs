//! Runs PTX kernels without a GPU to check that they compute the right results.
//!
//! All threads of all blocks of a launch run concurrently, interleaved by instruction in an order drawn from a seed.
//! How long each warp runs and when a requested copy lands differ from seed to seed. So a kernel that reads before it
//! has waited, or releases a buffer that is still being read, shows wrong results or an error: an access outside an
//! allocation or to a misaligned address, a launch in which all threads wait, an operand that changes while the matrix
//! unit may still read it, a tensor map that is used without its fences or changed under a copy. [`watch`] also finds accesses to
//! memory that nothing orders, whatever comes out: races, reads of what nobody has written, barriers that threads go around.
//!
//! Not covered: the assembler's translation of the PTX, and time. The ordinary instructions of common kernels are supported, and the
//! instructions of sm_80 to sm_100a that Gauntlet's kernels use; any other is refused by name when a kernel is read, and so are
//! recursion and calls through pointers.
//! Their semantics follow NVIDIA's "Parallel Thread Execution ISA".
//!
//! ```
//! use gauntlet_ptx::{Kernel, Launch, Memory, run};
//!
//! let text = "
//! .visible .entry numbered(.param .u64 words)
//! {
//!     .reg .b32 %thread;
//!     .reg .b64 %to, %own;
//!     ld.param.u64 %to, [words];
//!     mov.u32 %thread, %tid.x;
//!     mul.wide.u32 %own, %thread, 4;
//!     add.s64 %own, %to, %own;
//!     st.global.b32 [%own], %thread;
//!     ret;
//! }";
//! let kernel = Kernel::read(text, "numbered")?;
//! let mut memory = Memory::new();
//! let words = memory.allocate_unwritten(4 * 3);
//! let launch = Launch {
//!     parameter: &words.to_le_bytes(),
//!     ..Launch::of(&kernel, [1, 1, 1], [3, 1, 1])
//! };
//! let seed = 1;
//! run(&[launch], &mut memory, seed)?;
//! assert_eq!(memory.contents(words), Some(&[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arithmetic;
mod block;
mod changed_maps;
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
mod tensor_core;
mod tensor_map;
mod text;
mod thread;
mod watch;

pub use fault::{Fault, ReadError, Spot};
pub use launch::{Launch, run, watch};
pub use memory::Memory;
pub use module::{Kernel, KernelParameter};
pub use tensor_map::{Swizzle, TensorMap};
