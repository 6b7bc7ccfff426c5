//! Why an engine, a kernel or a run is refused.

use std::path::PathBuf;

use gauntlet_device::Arch;
use gauntlet_problems::InputsError;
use thiserror::Error;

use crate::compiler::LIBRARIES_VARIABLE;
use crate::driver::{DriverError, UnsupportedGpu};
use crate::packing::PackingError;
use crate::plan::PlanError;
use crate::trace::TraceError;

/// Why a variant has no machine code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// There is no NVRTC.
    #[error(
        "no CUDA compiler: libnvrtc.so is not under {}, and the dynamic linker does not find it; run scripts/install-cuda-compiler, or set \
         {LIBRARIES_VARIABLE} to the folder that holds it",
        list(looked)
    )]
    NoCompiler {
        /// Folders without one.
        looked: Vec<PathBuf>,
    },
    /// It cannot be loaded.
    #[error(
        "{path} cannot be used as the CUDA compiler: {message}; set {LIBRARIES_VARIABLE} to a folder with another"
    )]
    Library {
        /// The library.
        path: PathBuf,
        /// What the dynamic linker said.
        message: String,
    },
    /// A folder for kernels that are compiled beforehand cannot be written.
    #[error("kernels cannot be written: {message}; give a folder that can be written")]
    Folder {
        /// The folder, and why.
        message: String,
    },
    /// The kernel's instructions do not exist on the architecture.
    #[error(
        "{variant} cannot be built for {arch}: kernels by mma.sync and cp.async are built for sm_80, sm_89 and sm_90a, those \
         by wgmma and bulk copies for sm_90a alone, and those by tcgen05 for sm_100a alone"
    )]
    Architecture {
        /// The variant.
        variant: String,
        /// The architecture asked for.
        arch: Arch,
    },
    /// No such kernel in this build.
    #[error("{variant}: this build of Gauntlet has no kernel of that name")]
    NoSource {
        /// The variant.
        variant: String,
    },
    /// The code is wrong.
    #[error("{variant} does not compile: {place}: {message}\n{log}")]
    Rejected {
        /// The variant.
        variant: String,
        /// File and line, where the compiler told.
        place: String,
        /// The first error.
        message: String,
        /// All that the compiler wrote.
        log: String,
    },
    /// It compiles, but not to the kernel.
    #[error("{variant} compiles, but its source has no kernel `{entry}`; kernels are named as their files")]
    NoEntry {
        /// The variant.
        variant: String,
        /// The kernel looked for.
        entry: String,
    },
    /// A user's source has no such kernel.
    #[error(
        "{file} compiles, but has no kernel `{kernel}`: a kernel is a `__global__` function, named with its namespace"
    )]
    NoKernel {
        /// The file.
        file: String,
        /// The kernel looked for.
        kernel: String,
    },
    /// The compiler itself failed.
    #[error("the CUDA compiler failed in {call}: {name}; `gauntlet doctor` tells which one is in use\n{log}")]
    Broken {
        /// The function.
        call: &'static str,
        /// NVRTC's name of the error.
        name: String,
        /// All that the compiler wrote.
        log: String,
    },
    /// A source or an option that C cannot express.
    #[error("a source or a definition contains a zero byte")]
    ZeroByte,
}

impl CompileError {
    /// Whether the error is specific to this kernel: another may compile with the same compiler.
    pub fn is_of_the_kernel(&self) -> bool {
        match self {
            Self::Architecture { .. }
            | Self::NoSource { .. }
            | Self::Rejected { .. }
            | Self::NoEntry { .. }
            | Self::NoKernel { .. }
            | Self::ZeroByte => true,
            Self::NoCompiler { .. } | Self::Library { .. } | Self::Folder { .. } | Self::Broken { .. } => {
                false
            }
        }
    }
}

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

fn list(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    names.join(", ")
}
