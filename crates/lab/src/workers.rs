//! Which programs serve the executors that run something.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_executor::{Limits, Patience, WorkerCommand};

use crate::error::LabError;
use crate::gates::Executor;
use crate::instruments::Instruments;
use crate::round::ExecutorKind;
use crate::workshop::Workshop;

/// Which programs serve the executors that run something.
#[derive(Debug, Clone)]
pub struct Workers {
    /// The command that serves the CPU executor.
    pub cpu: WorkerCommand,
    /// What serves the CUDA executor, by the name of the device.
    pub cuda: BTreeMap<String, CudaWorker>,
}

/// What serves the CUDA executor.
#[derive(Debug, Clone)]
pub struct CudaWorker {
    /// The command.
    pub command: WorkerCommand,
    /// Whether the device is here; otherwise candidates are compiled and not run.
    pub is_here: bool,
    /// Tools that look into what it runs.
    pub instruments: Instruments,
}

impl Workers {
    /// What runs the candidates of a round of that kind, where anything is run.
    pub(crate) fn executor(
        &self,
        kind: ExecutorKind,
        device: &Device,
        patience: Patience,
        limits: Limits,
    ) -> Result<Executor, LabError> {
        let workshop = |command: &WorkerCommand| Workshop::new(command.clone(), patience, limits);
        match (kind, self.cuda.get(&device.name)) {
            (ExecutorKind::Cuda, None) => Err(LabError::NoExecutor),
            (ExecutorKind::Cuda, Some(cuda)) if !cuda.is_here => {
                Ok(Executor::Compiled(workshop(&cuda.command)?))
            }
            (ExecutorKind::Cuda, Some(cuda)) => Ok(Executor::Live(
                workshop(&cuda.command)?.with_instruments(cuda.instruments.clone()),
            )),
            _ => Ok(Executor::Live(workshop(&self.cpu)?)),
        }
    }
}
