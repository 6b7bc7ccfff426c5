//! Why an engine, a kernel or a run is refused.

use gauntlet_cuda::CompileError;
use gauntlet_cuda::driver::DriverError;
use gauntlet_problems::InputsError;
use thiserror::Error;

use crate::packing::PackingError;
use crate::plan::{PlanError, UnsupportedGpu};
use crate::trace::TraceError;

/// Why a schedule cannot compute a problem on this engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The GPU cannot run the kernels.
    #[error(transparent)]
    Gpu(#[from] UnsupportedGpu),
    /// No kernel can do it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The kernel does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A block would not fit a multiprocessor.
    #[error("{variant}: {found} {what}, and at most {most} fit; {remedy}")]
    OverBudget {
        /// The variant.
        variant: String,
        /// What there is too much of.
        what: &'static str,
        /// How much the kernel takes.
        found: u32,
        /// How much there is.
        most: u32,
        /// What would take less.
        remedy: &'static str,
    },
    /// The driver refuses the kernel or its memory.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Why a run is refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RunError {
    /// The GPU cannot run the kernels.
    #[error(transparent)]
    Gpu(#[from] UnsupportedGpu),
    /// Operands of another problem.
    #[error(transparent)]
    Inputs(#[from] InputsError),
    /// They do not fit the device.
    #[error(
        "{copies} copies of the operands take {bytes} bytes of device memory, and {free} are free; use a smaller problem \
         or fewer copies"
    )]
    Memory {
        /// How many.
        copies: usize,
        /// Bytes of all.
        bytes: usize,
        /// Bytes that are free.
        free: usize,
    },
    /// The kernel has no operands yet.
    #[error("the kernel has no operands; attach some first")]
    NoOperands,
    /// A result was asked for that no call has computed.
    #[error("there is no result of call {index}; the last request had fewer calls")]
    NoCall {
        /// The call, counted from 0.
        index: usize,
    },
    /// Weights cannot be repacked.
    #[error(transparent)]
    Packing(#[from] PackingError),
    /// The plan cannot be made again (set-up per call).
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What is done in each call on the host cannot be recorded.
    #[error("setup = per-call: a graph holds no set-up on the host; use setup = once")]
    SetupInGraph,
    /// The driver refuses, or the kernel failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl RunError {
    /// Whether nothing more can be computed in this process.
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::Driver(error) if error.is_sticky())
    }
}

/// Why there is no trace of a call.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TracingError {
    /// The traced kernel cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The call failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The records that it wrote make no trace.
    #[error(transparent)]
    Records(#[from] TraceError),
}
