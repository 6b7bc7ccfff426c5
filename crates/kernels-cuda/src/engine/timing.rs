//! How calls are timed.
//!
//! A call's time is taken on the host, around all that a caller waits for. The device's time is taken in a call of its
//! own, whose launches are queued behind a closed gate between two events and so run without waiting for the host:
//! taken in the same call, it would hold the host's time for a launch, which on an idle device is as long as a small
//! kernel. That other call runs on the copy of the operands that is farthest in the rotation, so neither call finds the
//! other's operands in the cache.
//!
//! Nothing flushes the level-2 cache: what is cold or warm is decided by how many copies the caller rotates over (twice
//! the cache's size makes it cold). A flush by writing would leave a cache full of lines that the next call has to write
//! back, and would make it impossible to measure warm.

use std::time::{Duration, Instant};

use super::Kernel;
use crate::driver::{DriverError, Event};
use crate::error::RunError;

/// More launches than this are not queued behind a closed gate: the queue has room for about a thousand, and whoever
/// fills it waits for a gate that only he can open.
const MOST_BEHIND_GATE: usize = 256;

/// Calls in a graph and how often it is replayed for the median, and before that without counting: as the peers of the
/// H200 were timed.
const REPLAYS: usize = 15;
const REPLAYS_BEFORE: usize = 3;

/// How often the clock is read in a run of calls: to ask for it may take longer than a small kernel, and what is not
/// calls in such a run hides them from who watches it from outside.
const CLOCKS: usize = 8;

/// After so many calls the device may catch up: a queue that is full makes the host wait.
const QUEUED_AT_ONCE: usize = 100;

/// The times of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTimes {
    /// Around everything that a caller waits for.
    pub call: Duration,
    /// From the begin of the first launch to the end of the last; none where it was not asked for.
    pub kernel: Option<Duration>,
    /// Clock of the multiprocessors in MHz, as last read in the run of calls that this is of.
    pub clock: Option<f64>,
}

impl Kernel {
    /// Makes every element of the result NaN and computes once.
    ///
    /// # Errors
    /// If there are no operands, or the kernel fails.
    pub fn run(&self, copy: usize) -> Result<CallTimes, RunError> {
        self.poison()?;
        Ok(CallTimes {
            call: self.time_call(copy)?,
            kernel: None,
            clock: self.clock(),
        })
    }

    /// Computes `samples` times on copies from `first_copy` on, in rotation; the last result stays. The device's time is
    /// taken on request, in as many calls again.
    ///
    /// # Errors
    /// If there are no operands, or the kernel fails.
    pub fn time(
        &self,
        samples: usize,
        first_copy: usize,
        device_too: bool,
    ) -> Result<Vec<CallTimes>, RunError> {
        let farthest = self.copies() / 2;
        let events = [
            Event::new(&self.shared.context)?,
            Event::new(&self.shared.context)?,
        ];
        let between = samples.div_ceil(CLOCKS);
        let mut clock = None;
        (0..samples)
            .map(|sample| {
                let copy = first_copy.wrapping_add(sample);
                let kernel = device_too
                    .then(|| self.time_kernel(copy.wrapping_add(farthest), &events))
                    .transpose()?;
                let call = self.time_call(copy)?;
                if sample % between == 0 {
                    clock = self.clock();
                }
                Ok(CallTimes { call, kernel, clock })
            })
            .collect()
    }

    /// The median time of a call in a graph of `calls` calls, in rotation over the copies: what a serving engine that
    /// records its steps would see, with launches but no host between calls.
    ///
    /// # Errors
    /// If set-up is per call, there are no operands, or the kernel fails.
    pub fn replay(&self, calls: usize) -> Result<Duration, RunError> {
        let calls = calls.max(1);
        if self.sets_up_in_each_call() {
            return Err(RunError::SetupInGraph);
        }
        // Whatever the driver loads at a first launch cannot be recorded.
        self.time_call(0)?;
        let stream = &self.shared.stream;
        let graph = stream.capture(|| {
            (0..calls).try_for_each(|call| {
                let ready = self.ready(call)?;
                self.launch(&ready).map_err(RunError::from)
            })
        })?;
        let [start, end] = [
            Event::new(&self.shared.context)?,
            Event::new(&self.shared.context)?,
        ];
        let replay = || -> Result<Duration, DriverError> {
            start.record(stream)?;
            // SAFETY: memory and kernel belong to `self`, and the wait below ends their use.
            unsafe { graph.launch(stream) }?;
            end.record(stream)?;
            self.finish()?;
            end.since(&start)
        };
        for _ in 0..REPLAYS_BEFORE {
            replay()?;
        }
        let mut times = (0..REPLAYS).map(|_| replay()).collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable();
        Ok(times[REPLAYS / 2] / u32::try_from(calls).unwrap_or(u32::MAX))
    }

    /// The host's times for queuing each of `calls` calls, sorted, in rotation over the copies: all that a caller waits for
    /// who does not wait for the result.
    ///
    /// # Errors
    /// If there are no operands, or the kernel fails.
    pub fn time_queuing(&self, calls: usize) -> Result<Vec<Duration>, RunError> {
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            let start = Instant::now();
            let ready = self.ready(call)?;
            self.launch(&ready)?;
            drop(ready);
            times.push(start.elapsed());
            if call % QUEUED_AT_ONCE == 0 {
                self.finish()?;
            }
        }
        self.finish()?;
        times.sort_unstable();
        Ok(times)
    }

    pub(super) fn time_call(&self, copy: usize) -> Result<Duration, RunError> {
        self.shared.context.make_current()?;
        let start = Instant::now();
        let ready = self.ready(copy)?;
        self.launch(&ready)?;
        drop(ready);
        self.finish()?;
        Ok(start.elapsed())
    }

    /// The device's time of a call whose launches are all queued before the first begins, where the device has a gate.
    pub(super) fn time_kernel(&self, copy: usize, [start, end]: &[Event; 2]) -> Result<Duration, RunError> {
        self.shared.context.make_current()?;
        let stream = &self.shared.stream;
        // Set-up copies from the host, which may wait for the stream: it comes before the gate.
        let ready = self.ready(copy)?;
        let few = self.resources().launches <= MOST_BEHIND_GATE;
        let gate = self.shared.gate.as_ref().filter(|_| few);
        let closed = gate.map(|gate| gate.close(stream)).transpose()?;
        start.record(stream)?;
        self.launch(&ready)?;
        end.record(stream)?;
        drop(closed);
        drop(ready);
        self.finish()?;
        Ok(end.since(start)?)
    }

    fn clock(&self) -> Option<f64> {
        self.shared.monitor.as_ref()?.clock()
    }
}
