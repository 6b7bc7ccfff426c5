//! The programs that serve the executors which run something.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use gauntlet_device::Device;
use gauntlet_worker::{Limits, Record, Timeouts, WorkerCommand};

use crate::evidence::{ExecutorKind, JudgeError};
use crate::runner::device_watch::DeviceWatch;
use crate::runner::instruments::Instruments;
use crate::runner::workshop::Workshop;

/// The source of evidence.
pub enum Executor {
    /// Candidates are run.
    Live(Workshop),
    /// Candidates are compiled but not run, because the device is not present.
    Compiled(Workshop),
    /// Recorded results are replayed.
    Recorded(Record),
}

#[cfg(test)]
impl Executor {
    /// Replays a record that holds nothing.
    pub fn without_times() -> Self {
        Self::Recorded(Record {
            source: "a test".to_owned(),
            uncertainty: None,
            candidates: BTreeMap::new(),
            peers: BTreeMap::new(),
        })
    }
}

/// The programs that serve the executors which run something.
#[derive(Debug, Clone)]
pub struct Workers {
    /// The command that serves the CPU executor.
    pub cpu: WorkerCommand,
    /// The program for the CUDA executor, by the name of the device.
    pub cuda: BTreeMap<String, CudaWorker>,
}

/// The program for the CUDA executor.
#[derive(Debug, Clone)]
pub struct CudaWorker {
    /// The command.
    pub command: WorkerCommand,
    /// Whether the device is present; otherwise candidates are compiled and not run.
    pub is_here: bool,
    /// Tools that inspect what it runs.
    pub instruments: Instruments,
    /// What reads the state of the device; none if nothing can.
    pub device_watch: Option<Arc<dyn DeviceWatch>>,
}

/// The variable that says how many threads the CPU executor has.
const THREADS: &str = "GAUNTLET_THREADS";

impl Workers {
    /// The same, but the CPU executor has this many threads.
    pub fn with_threads(&self, threads: NonZeroUsize) -> Self {
        let mut workers = self.clone();
        workers
            .cpu
            .environment
            .insert(THREADS.to_owned(), threads.to_string());
        workers
    }

    /// The command for an executor of that kind, if the kind runs something.
    pub fn executor(
        &self,
        kind: ExecutorKind,
        device: &Device,
        timeouts: Timeouts,
        limits: Limits,
    ) -> Result<Executor, JudgeError> {
        let workshop = |command: &WorkerCommand| Workshop::new(command.clone(), timeouts, limits);
        match (kind, self.cuda.get(&device.name)) {
            (ExecutorKind::Cuda, None) => Err(JudgeError::NoExecutor),
            (ExecutorKind::Cuda, Some(cuda)) if !cuda.is_here => {
                Ok(Executor::Compiled(workshop(&cuda.command)?))
            }
            (ExecutorKind::Cuda, Some(cuda)) => Ok(Executor::Live(
                workshop(&cuda.command)?
                    .with_instruments(cuda.instruments.clone())
                    .with_device_watch(cuda.device_watch.clone()),
            )),
            _ => Ok(Executor::Live(workshop(&self.cpu)?)),
        }
    }
}
