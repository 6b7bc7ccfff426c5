//! One side of a pair: a worker process, watched while it is asked and while it is not.

use std::time::Instant;

use gauntlet_stats::Arm;
use gauntlet_worker::{WorkerError, WorkerProcess};

use crate::evidence::Candidate;
use crate::runner::{ExaminationFailure, Workshop};

/// A fresh worker process of one side.
pub struct Side {
    /// Whose side.
    pub arm: Arm,
    worker: WorkerProcess,
    /// Its CPU seconds when it last answered.
    answered: Option<f64>,
    /// What it used since.
    pub use_of_cpu: CpuUse,
}

/// CPU seconds of one side over a case.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuUse {
    /// While it answered.
    pub asked: f64,
    /// Between an answer and the next request, when the other side has its turn.
    pub idle: f64,
}

/// What an exchange took.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Seconds by the coordinator's clock.
    pub exchange: f64,
    /// CPU seconds of the worker, where the system tells.
    pub cpu: Option<f64>,
}

impl Effort {
    /// Seconds of work: of CPU time, which waiting for a disk does not add to, else by the clock.
    pub fn work(self) -> f64 {
        self.cpu.unwrap_or(self.exchange)
    }
}

impl Side {
    /// Starts a process.
    pub fn start(workshop: &Workshop, arm: Arm, candidate: &Candidate) -> Result<Self, ExaminationFailure> {
        let (worker, _) = workshop.start(arm, candidate)?;
        Ok(Self {
            arm,
            worker,
            answered: None,
            use_of_cpu: CpuUse::default(),
        })
    }

    /// Has the worker do something; also returns what that took.
    pub fn ask<T>(
        &mut self,
        call: impl FnOnce(&mut WorkerProcess) -> Result<T, WorkerError>,
    ) -> Result<(T, Effort), ExaminationFailure> {
        let before = self.worker.cpu_seconds();
        if let (Some(answered), Some(before)) = (self.answered, before) {
            self.use_of_cpu.idle += before - answered;
        }
        let start = Instant::now();
        let answer = call(&mut self.worker).map_err(|error| ExaminationFailure::of(self.arm, error))?;
        let exchange = start.elapsed().as_secs_f64();
        self.answered = self.worker.cpu_seconds();
        let cpu = before.zip(self.answered).map(|(before, after)| after - before);
        self.use_of_cpu.asked += cpu.unwrap_or(0.0);
        Ok((answer, Effort { exchange, cpu }))
    }

    /// Forgets what it used so far, and brings up to date which processes are watched.
    pub fn begin_case(&mut self) {
        let _counted = self.worker.census();
        self.answered = self.worker.cpu_seconds();
        self.use_of_cpu = CpuUse::default();
    }

    /// What it used in the case, its idle time up to now and children that came since included.
    pub fn end_case(&mut self) -> CpuUse {
        if let (Some(answered), Some(now)) = (self.answered, self.worker.cpu_seconds()) {
            self.use_of_cpu.idle += now - answered;
            self.answered = Some(now);
        }
        self.use_of_cpu
    }
}
