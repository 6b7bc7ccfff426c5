//! One side of a pair: a worker process whose CPU use is watched during and between requests.

use std::time::Instant;

use gauntlet_stats::Arm;
use gauntlet_worker::{WorkerError, WorkerProcess};

use super::placement::PlacementWatch;
use crate::evidence::Candidate;
use crate::runner::{ExaminationFailure, Workshop};

/// A fresh worker process of one side.
pub struct Side {
    /// Which side.
    pub arm: Arm,
    worker: WorkerProcess,
    /// Calls of the last request.
    pub calls: usize,
    /// Its CPU seconds at its last answer.
    answered: Option<f64>,
    placement: PlacementWatch,
    /// CPU seconds used since.
    pub use_of_cpu: CpuUse,
}

/// CPU seconds of one side over a case.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuUse {
    /// During requests.
    pub asked: f64,
    /// Between an answer and the next request, while the other side has its turn.
    pub idle: f64,
}

/// The cost of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Seconds by the coordinator's clock.
    pub exchange: f64,
    /// CPU seconds of the worker, where the system reports them.
    pub cpu: Option<f64>,
}

impl Effort {
    /// Seconds of work: CPU time, which excludes disk waits, or else elapsed time.
    pub fn work(self) -> f64 {
        self.cpu.unwrap_or(self.exchange)
    }
}

impl Side {
    /// Starts a process.
    pub fn start(workshop: &Workshop, arm: Arm, candidate: &Candidate) -> Result<Self, ExaminationFailure> {
        let (worker, _) = workshop.start_trial(arm, candidate)?;
        Ok(Self {
            arm,
            worker,
            calls: 1,
            answered: None,
            placement: PlacementWatch::default(),
            use_of_cpu: CpuUse::default(),
        })
    }

    /// Sends the worker a request; also returns the cost of the exchange.
    pub fn ask<T>(
        &mut self,
        call: impl FnOnce(&mut WorkerProcess) -> Result<T, WorkerError>,
    ) -> Result<(T, Effort), ExaminationFailure> {
        self.placement.before_turn(self.arm, &self.worker)?;
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
        self.placement.after_turn(self.arm, &self.worker)?;
        Ok((answer, Effort { exchange, cpu }))
    }

    /// Resets the CPU use, and updates the set of processes that are watched.
    pub fn begin_case(&mut self) {
        let _counted = self.worker.census();
        self.answered = self.worker.cpu_seconds();
        self.use_of_cpu = CpuUse::default();
    }

    /// CPU use in this case, including idle time until now and child processes started meanwhile.
    pub fn end_case(&mut self) -> CpuUse {
        if let (Some(answered), Some(now)) = (self.answered, self.worker.cpu_seconds()) {
            self.use_of_cpu.idle += now - answered;
            self.answered = Some(now);
        }
        self.use_of_cpu
    }
}
