//! How calls are timed.
//!
//! A call's time is measured on the host, around everything a caller waits for. The device's time is measured in a
//! separate call, whose launches are queued behind a hold between two events, so they run without waiting for
//! the host. Measured in the same call, it would include the host's time for a launch, which on an idle device is as
//! long as a small kernel. The separate call uses another copy of the operands, so that neither call finds the other's
//! operands in the cache.
//!
//! Nothing flushes the level-2 cache: the number of copies that the caller rotates over decides whether it is cold or
//! warm (twice the cache's size makes it cold). A flush by writing would leave a cache full of lines that the next call
//! has to write back, and would make warm measurements impossible.

use std::time::{Duration, Instant};

use super::Kernel;
use crate::error::RunError;
use gauntlet_cuda::driver::{DriverError, Event};

/// Most launches that are queued behind a hold. The queue has room for about a thousand; filling it would block
/// the host, which alone can end the hold.
const MAX_BEHIND_HOLD: usize = 256;

/// Calls in a graph, replays for the median, and uncounted replays before them: the same as for the peer measurements
/// on the H200.
const REPLAYS: usize = 15;
const REPLAYS_BEFORE: usize = 3;

/// Clock readings in a run of calls. One reading may take longer than a small kernel, and time without calls would hide
/// the load from an external observer.
const CLOCKS: usize = 8;

/// After this many calls the device may catch up: a full queue makes the host wait.
const QUEUED_AT_ONCE: usize = 100;

/// The times of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTimes {
    /// The time around everything that a caller waits for.
    pub call: Duration,
    /// From the start of the first launch to the end of the last; `None` unless requested.
    pub kernel: Option<Duration>,
    /// Clock of the multiprocessors in MHz, as last read during this run of calls.
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
            call: self.time_call(copy, 0)?,
            kernel: None,
            clock: self.clock(),
        })
    }

    /// Computes once on each of these copies of the operands, in order; all results are kept. On request the device's
    /// time is measured too, in as many additional calls.
    ///
    /// # Errors
    /// If there are no operands, there is no memory for the results, or the kernel fails.
    pub fn time(&mut self, copies: &[usize], device_too: bool) -> Result<Vec<CallTimes>, RunError> {
        self.keep(copies.len())?;
        let farthest = self.copies() / 2;
        let events = [
            Event::new(&self.shared.context)?,
            Event::new(&self.shared.context)?,
        ];
        let between = copies.len().div_ceil(CLOCKS);
        let mut clock = None;
        let each = copies.iter().enumerate();
        each.map(|(index, &copy)| {
            let kernel = device_too
                .then(|| self.time_kernel(copy.wrapping_add(farthest), index, &events))
                .transpose()?;
            let call = self.time_call(copy, index)?;
            if index % between == 0 {
                clock = self.clock();
            }
            Ok(CallTimes { call, kernel, clock })
        })
        .collect()
    }

    /// The median time of a call in a graph of `calls` calls, in rotation over the copies. This is the time in a
    /// serving engine that records its steps: with launches, but without the host between calls.
    ///
    /// # Errors
    /// If set-up is per call, there are no operands, or the kernel fails.
    pub fn replay(&self, calls: usize) -> Result<Duration, RunError> {
        let calls = calls.max(1);
        if self.sets_up_in_each_call() {
            return Err(RunError::SetupInGraph);
        }
        // The driver may load code at the first launch, which cannot be recorded.
        self.time_call(0, 0)?;
        let stream = &self.shared.stream;
        let graph = stream.capture(|| {
            (0..calls).try_for_each(|call| {
                let ready = self.ready(call, 0)?;
                self.launch(&ready).map_err(RunError::from)
            })
        })?;
        let [start, end] = [
            Event::new(&self.shared.context)?,
            Event::new(&self.shared.context)?,
        ];
        let replay = || -> Result<Duration, DriverError> {
            start.record(stream)?;
            // SAFETY: memory and kernel belong to `self`, and their use ends with the wait below.
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

    /// The host's times for queuing each of `calls` calls, sorted, in rotation over the copies: the full cost to a
    /// caller that does not wait for the result.
    ///
    /// # Errors
    /// If there are no operands, or the kernel fails.
    pub fn time_queuing(&self, calls: usize) -> Result<Vec<Duration>, RunError> {
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            let start = Instant::now();
            let ready = self.ready(call, 0)?;
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

    pub(super) fn time_call(&self, copy: usize, output: usize) -> Result<Duration, RunError> {
        self.shared.context.make_current()?;
        let start = Instant::now();
        let ready = self.ready(copy, output)?;
        self.launch(&ready)?;
        drop(ready);
        self.finish()?;
        Ok(start.elapsed())
    }

    /// The device's time of a call. If the stream can be held back, all launches are queued before the first begins.
    pub(super) fn time_kernel(
        &self,
        copy: usize,
        output: usize,
        [start, end]: &[Event; 2],
    ) -> Result<Duration, RunError> {
        self.shared.context.make_current()?;
        let stream = &self.shared.stream;
        // Set-up copies from the host, which may wait for the stream, so it precedes the hold.
        let ready = self.ready(copy, output)?;
        let few = self.resources().launches <= MAX_BEHIND_HOLD;
        let hold = self.shared.hold.as_ref().filter(|_| few);
        let holding = hold.map(|hold| hold.begin(stream)).transpose()?;
        start.record(stream)?;
        self.launch(&ready)?;
        end.record(stream)?;
        drop(holding);
        drop(ready);
        self.finish()?;
        Ok(end.since(start)?)
    }

    fn clock(&self) -> Option<f64> {
        self.shared.monitor.as_ref()?.clock()
    }
}
