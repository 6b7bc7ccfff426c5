//! One side of a pair: a worker process whose CPU use is watched during and between requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use gauntlet_stats::Arm;
use gauntlet_task::Output;
use gauntlet_worker::protocol::{Failure, FailureKind, Scope};
use gauntlet_worker::{Call, Heat, WorkerError, WorkerProcess};

use super::placement::PlacementWatch;
use super::requests::TimedRequest;
use super::results::Checker;
use super::slot::Slot;
use crate::evidence::{Candidate, JudgeError, Trust};
use crate::runner::{ExaminationFailure, Workshop};

/// A fresh worker process of one side.
pub struct Side {
    /// Which side.
    pub arm: Arm,
    worker: WorkerProcess,
    /// Its CPU seconds at its last answer.
    answered: Option<f64>,
    placement: PlacementWatch,
    /// The purpose of its last request.
    last: Purpose,
    /// Whether what it does beside its requests is watched.
    is_watched: bool,
    /// What requests for each purpose have cost in this case.
    pub accounts: Accounts,
}

/// The purpose of a request. Work is charged where it is done, so each purpose has an account of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Builds; never charged.
    Build,
    /// Reads operands.
    Load,
    /// Prepares constant inputs.
    Prepare,
    /// Computes.
    Time,
    /// Writes a result.
    Result,
}

/// What one side's requests have cost in a case, by purpose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Accounts([Account; 5]);

impl Accounts {
    /// The account of a purpose.
    pub fn of(&self, purpose: Purpose) -> &Account {
        &self.0[purpose as usize]
    }

    /// CPU seconds used after answers while nothing was asked, whatever the last request was.
    pub fn idle(&self) -> f64 {
        self.0.iter().map(|account| account.idle).sum()
    }

    fn of_mut(&mut self, purpose: Purpose) -> &mut Account {
        &mut self.0[purpose as usize]
    }
}

/// What requests for one purpose have cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    /// How many units: sets of operands, calls, or results.
    pub units: usize,
    /// Seconds by the coordinator's clock.
    pub elapsed: f64,
    /// CPU seconds during the requests.
    pub asked: f64,
    /// CPU seconds between the answers and the next request, whatever that is for.
    pub idle: f64,
}

impl Account {
    /// CPU seconds for each unit, with what went on after the answers; elapsed seconds where no CPU time is known.
    pub fn work(&self) -> f64 {
        let cpu = self.asked + self.idle;
        let all = if cpu > 0.0 { cpu } else { self.elapsed };
        all / self.units.max(1) as f64
    }
}

/// The cost of an exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Seconds by the coordinator's clock.
    pub exchange: f64,
    /// CPU seconds of the worker, where the system reports them.
    pub cpu: Option<f64>,
    /// Seconds that the worker's threads waited for a processor, where the system reports them.
    pub waited: Option<f64>,
}

impl Effort {
    /// The share of the time in which the worker's threads were ready to run that they waited.
    pub fn waiting(&self) -> Option<f64> {
        let (waited, ran) = (self.waited?, self.cpu?);
        Some(waited / (waited + ran).max(f64::MIN_POSITIVE))
    }
}

impl Side {
    /// Starts a process.
    pub fn start(
        workshop: &Workshop,
        arm: Arm,
        candidate: &Candidate,
        trust: Trust,
    ) -> Result<Self, ExaminationFailure> {
        let (worker, _) = workshop.start_trial(arm, candidate)?;
        Ok(Self {
            arm,
            worker,
            answered: None,
            placement: PlacementWatch::default(),
            last: Purpose::Build,
            is_watched: trust.is_watched(),
            accounts: Accounts::default(),
        })
    }

    /// Sends the worker a request for `units` of a purpose; also returns the cost of the exchange.
    pub fn ask<T>(
        &mut self,
        purpose: Purpose,
        units: usize,
        call: impl FnOnce(&mut WorkerProcess) -> Result<T, WorkerError>,
    ) -> Result<(T, Effort), ExaminationFailure> {
        if !self.is_watched {
            let start = Instant::now();
            let answer = call(&mut self.worker).map_err(|error| ExaminationFailure::of(self.arm, error))?;
            let effort = Effort {
                exchange: start.elapsed().as_secs_f64(),
                cpu: None,
                waited: None,
            };
            return Ok((answer, effort));
        }
        self.placement.before_turn(self.arm, &self.worker)?;
        let before = self.rest();
        let waited_before = self.worker.waited_seconds();
        let start = Instant::now();
        let answer = call(&mut self.worker).map_err(|error| ExaminationFailure::of(self.arm, error))?;
        let exchange = start.elapsed().as_secs_f64();
        self.answered = self.worker.cpu_seconds();
        let waited = self.worker.waited_seconds();
        self.last = purpose;
        let cpu = before.zip(self.answered).map(|(before, after)| after - before);
        let account = self.accounts.of_mut(purpose);
        account.units += units;
        account.elapsed += exchange;
        account.asked += cpu.unwrap_or(0.0);
        self.placement.after_turn(self.arm, &self.worker)?;
        // Threads that ended meanwhile take what they waited with them.
        let waited = waited_before
            .zip(waited)
            .map(|(before, after)| (after - before).max(0.0));
        let effort = Effort {
            exchange,
            cpu,
            waited,
        };
        Ok((answer, effort))
    }

    /// Times calls, and lets the worker keep the results of these of them, or of all. Rejects reports that add up to more than the
    /// coordinator's own clock saw.
    pub fn time(&mut self, copies: &[usize], results: Option<&[usize]>) -> Result<Slot, ExaminationFailure> {
        let ((timed, _), effort) = self.ask(Purpose::Time, copies.len(), |worker| match results {
            Some(results) => worker.time_for_results(copies, results),
            None => worker.time(copies, false),
        })?;
        Slot::new(&timed, effort)
    }

    /// Steps a held worker through calls, each of which gets all of its values just before: a call on known values is then
    /// like one on new ones in all but these. Also returns the results that are asked for.
    pub fn step(
        &mut self,
        request: &TimedRequest,
        set: impl Fn(usize) -> usize,
        checker: &mut Checker,
    ) -> Result<(Slot, Vec<Output>), ExaminationFailure> {
        let sets: Vec<usize> = (0..request.copies.len()).map(set).collect();
        let written: BTreeMap<usize, _> = BTreeSet::from_iter(&sets)
            .into_iter()
            .map(|set| Ok((*set, checker.written(*set)?)))
            .collect::<Result<_, JudgeError>>()?;
        let call = |(call, copy): (usize, &usize)| Call {
            copy: *copy,
            set: sets[call],
            operands: &written[&sets[call]],
            is_drawn: request.checks.contains(&call),
            heat: request.heat.get(call).map(|seconds| Heat {
                seconds: *seconds,
                key: rand::random(),
            }),
        };
        let calls: Vec<Call> = request.copies.iter().enumerate().map(call).collect();
        let (outputs, poison) = (checker.sizes().outputs(), checker.poison());
        let (stepped, effort) = self.ask(Purpose::Time, calls.len(), |worker| {
            worker.step(&calls, &outputs, poison)
        })?;
        let slot = Slot::stepped(&stepped, effort)?;
        Ok((slot, stepped.results.into_iter().map(Output).collect()))
    }

    /// Whether the coordinator writes operands into the worker's memory, reads results out of it, and clocks each call.
    pub fn is_held(&self) -> bool {
        self.worker.is_held()
    }

    /// Whether it can be put under load right before a call.
    pub fn heats(&self) -> bool {
        self.worker.heats()
    }

    /// Whether it can keep the results of only some calls.
    pub fn chooses_results(&self) -> bool {
        self.worker.chooses_results()
    }

    /// Whether its host can clock calls on the device alone.
    pub fn has_device_times(&self) -> bool {
        self.worker.has_device_times()
    }

    /// Whether its host can say what the device did in a call.
    pub fn tells_activity(&self) -> bool {
        self.worker.tells_activity()
    }

    /// Lets its host clock calls from here to there from now on.
    pub fn clock(&mut self, scope: Scope) {
        self.worker.clock(scope);
    }

    /// Lets its host hold the device back before each call for this many seconds.
    pub fn hold_back_for(&mut self, seconds: f64) {
        self.worker.hold_back_for(seconds);
    }

    /// Lets the worker load operands and time its calls by itself. Comes before its first load.
    pub fn release(&mut self) {
        self.worker.release();
    }

    /// Fails if this side's memory cannot be reached though the other side's can: then it is not the system that keeps the
    /// coordinator from it, but the kernel.
    pub fn must_be_reached_like(&self, other: &Self) -> Result<(), ExaminationFailure> {
        match self.worker.unreachable() {
            Some(why) if other.worker.is_held() => {
                let failure = Failure {
                    kind: FailureKind::BadRequest,
                    message: format!("the coordinator cannot reach the memory of its process: {why}"),
                };
                Err(ExaminationFailure::of(self.arm, WorkerError::Failed(failure)))
            }
            _ => Ok(()),
        }
    }

    /// CPU seconds of its processes so far, where the system reports them.
    pub fn cpu_seconds(&mut self) -> Option<f64> {
        self.worker.cpu_seconds()
    }

    /// Updates the set of processes that count as its own.
    pub fn count(&mut self) {
        let _counted = self.worker.census();
    }

    /// Lets it run on these processors only. Only for a side that is not watched: the watch would take it for a move by the
    /// other side.
    #[cfg(target_os = "linux")]
    pub fn restrict(&mut self, processors: &[usize]) {
        self.count();
        // Where the system does not allow it, sides run where they like, and their times scatter more.
        let _restricted = self.worker.restrict(processors);
    }

    /// Only Linux lets a program place others.
    #[cfg(not(target_os = "linux"))]
    pub fn restrict(&mut self, _processors: &[usize]) {}

    /// Adds the CPU time since the last answer to the account of what was asked last; returns the CPU seconds so far.
    fn rest(&mut self) -> Option<f64> {
        let now = self.worker.cpu_seconds();
        if let (Some(answered), Some(now)) = (self.answered, now) {
            self.accounts.of_mut(self.last).idle += now - answered;
        }
        now
    }

    /// Empties the accounts, and updates the set of processes that are watched.
    pub fn begin_case(&mut self) {
        if !self.is_watched {
            return;
        }
        let _counted = self.worker.census();
        self.answered = self.worker.cpu_seconds();
        self.accounts = Accounts::default();
    }

    /// The accounts of this case, including idle time until now and child processes started meanwhile.
    pub fn end_case(&mut self) -> Accounts {
        self.answered = self.rest();
        self.accounts
    }
}
