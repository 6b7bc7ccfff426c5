//! Arguments for the place of a measurement, shared by several commands.

use clap::{Args, ValueEnum};
use gauntlet_device::Arch;

/// Where something is measured.
#[derive(Debug, Clone, Args)]
pub struct Measured {
    /// What runs it; the CPU unless the task's tensors belong on a GPU.
    #[arg(long, value_enum)]
    pub executor: Option<MeasuredExecutor>,
    /// The GPU (`--executor cuda`; see `gauntlet devices`): it must be the one that is here.
    #[arg(long)]
    pub device: Option<String>,
}

impl Measured {
    /// The executor that is asked for, or the CPU.
    pub fn executor(&self) -> MeasuredExecutor {
        self.executor.unwrap_or(MeasuredExecutor::Cpu)
    }
}

/// An executor that runs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasuredExecutor {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU of this machine.
    Cuda,
}

/// What a worker of a Python kernel imports at its start, and where it puts the tensors of a built-in task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkerTensors {
    /// numpy; on the CPU.
    Cpu,
    /// torch too; on the CPU.
    Torch,
    /// torch, which opens the GPU; on the GPU.
    Cuda,
}

/// What only the CUDA worker takes.
#[derive(Debug, Clone, Args)]
pub struct CudaWorkerArguments {
    /// Which GPU, from 0 (cuda, library, nvrtc).
    #[arg(long, env = "GAUNTLET_GPU", default_value_t = 0)]
    pub ordinal: usize,
    /// Only compile, for this architecture: there need be no GPU. The nvrtc worker also interprets small cases.
    #[arg(long, hide = true, value_name = "ARCHITECTURE", value_parser = arch)]
    pub compile_for: Option<Arch>,
    /// Multiprocessors of the GPU that is compiled for.
    #[arg(long, hide = true, value_name = "N")]
    pub processors: Option<u32>,
}

fn arch(text: &str) -> Result<Arch, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}
