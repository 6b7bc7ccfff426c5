//! The fifth-generation tensor cores of sm_100a (PTX ISA, "TensorCore 5th Generation Instructions", `tcgen05`).
//!
//! One thread issues products and copies to tensor memory. They are carried out later, by the tensor core, in the order in which
//! the thread issued them; a commit behind them arrives at a barrier when they have ended. Between issue and end their
//! operands in shared memory must not change, and no thread may access the columns of tensor memory that they write.
//!
//! An issue checks what the instruction says: descriptors, allocation, fences, and accesses of other warps to the
//! same columns. [`queue`] decides when an issued operation is carried out; [`warp`] holds what a whole warp executes:
//! allocation, loads and stores.
//!
//! The order in which the hardware sums the products of one instruction, and how it rounds in between, are not specified by the
//! ISA. Here the sum of the 64 products is exact and is rounded once, when it is added to the accumulator.

mod descriptor;
pub(crate) mod instruction;
mod issue;
mod kernel;
pub(crate) mod memory;
mod product;
mod queue;
mod warp;

pub(crate) use kernel::{check_groups, find_moves};
pub(crate) use memory::TensorMemory;
pub(crate) use queue::Queues;

/// When a thread last executed the fences that order tensor core operations across threads (`tcgen05.fence`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fences {
    /// `before_thread_sync`: what the thread did before may be relied on by threads that it synchronises with later.
    pub before: u64,
    /// `after_thread_sync`: what the thread does later comes after what it has synchronised with.
    pub after: u64,
}
