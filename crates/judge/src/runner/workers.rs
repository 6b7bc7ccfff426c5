//! Which programs serve the executors that run something.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_worker::{Limits, Patience, Record, WorkerCommand};

use crate::evidence::{ExecutorKind, JudgeError};
use crate::runner::instruments::Instruments;
use crate::runner::workshop::Workshop;

/// Where evidence comes from.
pub enum Executor {
    /// Candidates are run.
    Live(Workshop),
    /// Candidates are compiled and not run: the device is not here.
    Compiled(Workshop),
    /// What was written down is served.
    Recorded(Record),
    /// Nothing is run: the model says what would come of it.
    Predicted,
}

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
    /// What runs candidates on an executor of that kind, for kinds that run something.
    pub fn executor(
        &self,
        kind: ExecutorKind,
        device: &Device,
        patience: Patience,
        limits: Limits,
    ) -> Result<Executor, JudgeError> {
        let workshop = |command: &WorkerCommand| Workshop::new(command.clone(), patience, limits);
        match (kind, self.cuda.get(&device.name)) {
            (ExecutorKind::Cuda, None) => Err(JudgeError::NoExecutor),
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
