//! Why a layer, a plan or a call is refused.

use gauntlet_problems::AttentionFormat;
use thiserror::Error;

use crate::error::BuildError;
use crate::plan::PlanError;
use crate::plan::UnsupportedGpu;
use gauntlet_cuda::CompileError;
use gauntlet_cuda::driver::DriverError;

/// Why a layer, a plan or a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServeError {
    /// The GPU cannot run the kernels.
    #[error(transparent)]
    Gpu(#[from] UnsupportedGpu),
    /// No compiler was found.
    #[error(transparent)]
    Compiler(#[from] CompileError),
    /// The sizes are invalid, or the chosen kernel does not support a value in the schedule.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel does not compile, or does not fit the device.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The driver reports an error.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A list whose length differs from the number of the layer's products.
    #[error("{found} {what} for a layer of {expected} products; give one for each, in their order")]
    Count {
        /// What the list holds.
        what: &'static str,
        /// Products of the layer.
        expected: usize,
        /// Length of the list.
        found: usize,
    },
    /// A null address.
    #[error("{what}: the address is null; give that of device memory")]
    Null {
        /// The buffer it was given for.
        what: String,
    },
    /// An address that is not aligned for bulk copies and wide loads.
    #[error(
        "{what}: the address {address:#x} is not a multiple of {alignment}; memory from cuMemAlloc is, so copy it to the \
         begin of an allocation"
    )]
    Alignment {
        /// The buffer it was given for.
        what: String,
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        alignment: u64,
    },
    /// Neighbours that are not aligned for wide copies.
    #[error(
        "{what}: neighbours lie {bytes} bytes apart, which is no multiple of {alignment}; copy it to a contiguous array"
    )]
    Stride {
        /// The operand.
        what: &'static str,
        /// Bytes from one position, head or page to the next.
        bytes: u64,
        /// The required alignment in bytes.
        alignment: u64,
    },
    /// A plan that was made for another layer.
    #[error("the plan is for a layer of other sizes, form or output; plan with this layer's planner")]
    OtherLayer,
    /// A plan for one GPU on a queue of another.
    #[error("the plan is for GPU {plan}, and the queue is of GPU {queue}; each has its own library")]
    OtherDevice {
        /// The plan's GPU.
        plan: usize,
        /// The queue's GPU.
        queue: usize,
    },
    /// A call with ends of its products' tokens under a plan that knows the counts, or without them under one that does not.
    #[error("the plan {plan}; call `{call}`")]
    Ends {
        /// What is known of the tokens.
        plan: &'static str,
        /// The function for such plans.
        call: &'static str,
    },
    /// An address of ends that is null or not that of 32-bit numbers.
    #[error(
        "ends: the address {address:#x} is null or not a multiple of 4; give that of an i32 for each product"
    )]
    EndsAddress {
        /// The address.
        address: u64,
    },
    /// A routed call of more rows than its plan is for.
    #[error("ends: the call has {rows} rows of tokens, and its plan is for {most} at most; plan for as many")]
    EndsRows {
        /// The rows of the call.
        rows: usize,
        /// Those of the plan.
        most: usize,
    },
    /// Attention's scales are not of the kind that was planned for.
    #[error("scales: {given}, and the plan is for {format} with {needed}; {remedy}")]
    Scales {
        /// What the call brings.
        given: &'static str,
        /// The format of the operands.
        format: AttentionFormat,
        /// What the plan needs.
        needed: &'static str,
        /// What to give in its place.
        remedy: &'static str,
    },
    /// A call that needs more scratch memory than was reserved.
    #[error(
        "the call needs {needed} bytes of scratch memory, and the queue has {reserved}; call `Queue::reserve` with the plan \
         before the first call (`Queue::reserve_attention` for attention)"
    )]
    NotReserved {
        /// Bytes that the call needs.
        needed: usize,
        /// Bytes that the queue has reserved.
        reserved: usize,
    },
}

impl ServeError {
    /// Whether the error makes the CUDA context unusable for the rest of the process.
    pub fn is_sticky(&self) -> bool {
        match self {
            Self::Driver(error) | Self::Build(BuildError::Driver(error)) => error.is_sticky(),
            _ => false,
        }
    }
}
