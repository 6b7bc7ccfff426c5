//! The requests of the protocol as methods of a worker's process.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_parameters::Parameters;
use gauntlet_task::Sizes;
use gauntlet_tensors::TensorSpec;

use super::WorkerProcess;
use crate::error::WorkerError;
use crate::protocol::{
    Answer, CallActivity, CaseRequest, Description, POISON, Request, Resources, Sample, VERSION,
};

/// Most bytes of results that a worker keeps from one request.
const MAX_RESULT_BYTES: usize = 256 << 20;

/// How many calls a request may have, at least one, so that a worker can keep all of their results.
pub fn most_calls(sizes: &Sizes) -> usize {
    let bytes: usize = sizes.outputs().iter().map(TensorSpec::bytes).sum();
    (MAX_RESULT_BYTES / bytes.max(1)).max(1)
}

impl WorkerProcess {
    pub(super) fn describe(&mut self) -> Result<Description, WorkerError> {
        match self.call(Request::Describe)? {
            Answer::Description(description) if description.protocol == VERSION => Ok(description),
            Answer::Description(description) => Err(self.garbage(
                "describe",
                format!(
                    "it speaks version {} of the protocol, not {VERSION}",
                    description.protocol
                ),
                &description.worker,
            )),
            other => Err(self.wrong_answer("describe", &other)),
        }
    }

    /// Prepares a kernel for a case.
    pub fn build(&mut self, sizes: &Sizes, parameters: &Parameters) -> Result<Resources, WorkerError> {
        match self.call(Request::Build {
            case: CaseRequest::of(sizes),
            parameters: parameters.clone(),
            artefacts: self.artefacts.clone(),
        })? {
            Answer::Built { resources } => Ok(resources),
            other => Err(self.wrong_answer("build", &other)),
        }
    }

    /// Loads operands from safetensors files, `copies` in all, from each file in turn.
    pub fn load(&mut self, inputs: &[&Path], copies: usize) -> Result<u64, WorkerError> {
        match self.call(Request::Load {
            inputs: inputs.iter().map(|path| path.to_path_buf()).collect(),
            copies,
        })? {
            Answer::Loaded { bytes } => {
                if let Some(held) = &mut self.held {
                    held.begin();
                }
                Ok(bytes)
            }
            other => Err(self.wrong_answer("load", &other)),
        }
    }

    /// Tells the worker to prepare everything that stays the same in every call; returns the bytes that this takes
    /// besides the operands.
    pub fn prepare(&mut self) -> Result<u64, WorkerError> {
        match self.call(Request::Prepare)? {
            Answer::Prepared { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("prepare", &other)),
        }
    }

    /// Makes every element of the outputs NaN and computes once.
    pub fn run(&mut self, copy: usize) -> Result<Sample, WorkerError> {
        self.run_poisoned(copy, POISON)
    }

    /// Fills the outputs with a byte and computes once.
    pub fn run_poisoned(&mut self, copy: usize, poison: u8) -> Result<Sample, WorkerError> {
        match self.call(Request::Run { copy, poison })? {
            Answer::Ran(sample) => Ok(sample),
            other => Err(self.wrong_answer("run", &other)),
        }
    }

    /// Times one call on each of these copies; also returns the duration of the exchange on the coordinator's own clock,
    /// in seconds. The sum of the reported times cannot exceed it. The worker keeps all results: [`most_calls`] bounds
    /// their number.
    pub fn time(&mut self, copies: &[usize], phases: bool) -> Result<(Vec<Sample>, f64), WorkerError> {
        self.timed(copies, phases, None)
    }

    /// Times calls as [`time`](Self::time) does. A worker that can choose keeps the results of these calls only, and does less
    /// around the others.
    pub fn time_for_results(
        &mut self,
        copies: &[usize],
        results: &[usize],
    ) -> Result<(Vec<Sample>, f64), WorkerError> {
        let results = self.chooses_results.then(|| results.to_vec());
        self.timed(copies, false, results)
    }

    fn timed(
        &mut self,
        copies: &[usize],
        phases: bool,
        results: Option<Vec<usize>>,
    ) -> Result<(Vec<Sample>, f64), WorkerError> {
        let (answer, elapsed) = self.exchange(Request::Time {
            copies: copies.to_vec(),
            phases,
            scope: self.scope,
            results,
            hold: self.hold,
        })?;
        match answer {
            Answer::Timed { samples: timed } if timed.len() == copies.len() => {
                match timed.iter().find(|sample| !sample.is_possible()) {
                    Some(sample) => {
                        Err(self.garbage("time", format!("a reported time is not possible: {sample:?}"), ""))
                    }
                    None => Ok((timed, elapsed.as_secs_f64())),
                }
            }
            Answer::Timed { samples: timed } => Err(self.garbage(
                "time",
                format!("{} samples where {} were asked for", timed.len(), copies.len()),
                "",
            )),
            other => Err(self.wrong_answer("time", &other)),
        }
    }

    /// Tells the worker to write the result of a call of the last `run` or `time` to a file.
    pub fn output(&mut self, path: &Path, index: usize) -> Result<u64, WorkerError> {
        match self.call(Request::Output {
            path: path.to_owned(),
            index,
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("output", &other)),
        }
    }

    /// Tells the worker to write a timeline of one call on the device to a file.
    pub fn trace(&mut self, path: &Path) -> Result<u64, WorkerError> {
        match self.call(Request::Trace {
            path: path.to_owned(),
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("trace", &other)),
        }
    }

    /// Calls once on each of these copies, and says what the device did in each call. The worker keeps all results, as for
    /// [`time`](Self::time).
    pub fn activity(&mut self, copies: &[usize]) -> Result<Vec<CallActivity>, WorkerError> {
        match self.call(Request::Activity {
            copies: copies.to_vec(),
        })? {
            Answer::Recorded { calls } if calls.len() == copies.len() => {
                match calls.iter().all(CallActivity::is_possible) {
                    true => Ok(calls),
                    false => Err(self.garbage("activity", "work ends before it starts".to_owned(), "")),
                }
            }
            Answer::Recorded { calls } => Err(self.garbage(
                "activity",
                format!("{} calls where {} were asked for", calls.len(), copies.len()),
                "",
            )),
            other => Err(self.wrong_answer("activity", &other)),
        }
    }

    /// Tells the worker to exit and waits until it has, which takes longer under a tool. Files that it wrote to its
    /// folder stay until `self` is dropped.
    ///
    /// # Errors
    /// If it does not exit within the time for `describe`.
    pub fn stop(&mut self) -> Result<(), WorkerError> {
        let begun = Instant::now();
        match self.call(Request::Stop)? {
            Answer::Stopped => {}
            other => return Err(self.wrong_answer("stop", &other)),
        }
        while self.leader.try_wait().is_none() {
            if begun.elapsed() > self.timeouts.describe {
                self.kill();
                return Err(WorkerError::Late {
                    call: "stop",
                    limit: self.timeouts.describe,
                    stderr_tail: self.standard_error.stderr_tail(),
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn call(&mut self, request: Request) -> Result<Answer, WorkerError> {
        self.exchange(request).map(|(answer, _)| answer)
    }
}
