//! Why a layer, a plan or a call is refused.

use thiserror::Error;

use crate::driver::{DriverError, UnsupportedGpu};
use crate::error::{BuildError, CompileError};
use crate::plan::PlanError;

/// Why a layer, a plan or a call is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServeError {
    /// The GPU cannot run the kernels.
    #[error(transparent)]
    Gpu(#[from] UnsupportedGpu),
    /// There is no compiler.
    #[error(transparent)]
    Compiler(#[from] CompileError),
    /// The sizes make no problem, or the chosen kernel cannot do what a word of the schedule says.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel does not compile, or does not fit.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The driver refuses.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A list of another length than the layer's products.
    #[error("{found} {what} for a layer of {expected} products; give one for each, in their order")]
    Count {
        /// What the list holds.
        what: &'static str,
        /// Products of the layer.
        expected: usize,
        /// Length of the list.
        found: usize,
    },
    /// An address of nothing.
    #[error("{what}: the address is null; give that of device memory")]
    Null {
        /// Of what.
        what: String,
    },
    /// An address that copies and wide loads cannot take.
    #[error(
        "{what}: the address {address:#x} is not a multiple of {alignment}; memory from cuMemAlloc is, so copy it to the \
         begin of an allocation"
    )]
    Alignment {
        /// Of what.
        what: String,
        /// The address.
        address: u64,
        /// What it must be a multiple of.
        alignment: u64,
    },
    /// A plan that was made for another layer.
    #[error("the plan is for a layer of other sizes, form or output; plan with this layer's planner")]
    OtherLayer,
    /// A plan of one GPU on a queue of another.
    #[error("the plan is for GPU {plan}, and the queue is of GPU {queue}; each has its own library")]
    OtherDevice {
        /// The plan's.
        plan: usize,
        /// The queue's.
        queue: usize,
    },
    /// A call that needs more scratch memory than there is.
    #[error(
        "the call needs {needed} bytes of scratch memory, and the queue has {reserved}; call `Queue::reserve` with the plan \
         before the first call"
    )]
    NotReserved {
        /// Bytes that the call needs.
        needed: usize,
        /// Bytes that the queue has.
        reserved: usize,
    },
}

impl ServeError {
    /// Whether nothing more can be computed in this process.
    pub fn is_sticky(&self) -> bool {
        match self {
            Self::Driver(error) | Self::Build(BuildError::Driver(error)) => error.is_sticky(),
            _ => false,
        }
    }
}
