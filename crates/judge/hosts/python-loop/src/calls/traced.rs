//! Calls whose activity on the device is traced.

use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_calls::Tracer;
use gauntlet_calls::activity::{Activity, TracedCall, Work};

use super::{Call, Clocking, Host};
use crate::python::{Failed, Object, Python};

/// How long the device is watched before each call, while nothing is asked of the kernel: a thread that it left behind may be
/// at work. The host of compiled kernels does the same (`crates/judge/hosts/native/src/tracing.rs`).
const QUIET: Duration = Duration::from_millis(1);

impl Host {
    /// Takes whether tracing is to be on. Returns None.
    pub fn trace(&mut self, python: Python, is_on: &Object) -> Result<Object, Failed> {
        // Tracing that is on is turned off first, so that it never is twice.
        self.tracer = None;
        if is_on.number()? != 0 {
            self.tracer = Some(Tracer::start()?);
        }
        python.none()
    }

    /// Calls the kernel as [`timed`](Self::timed) does; also returns what the device did if tracing is on: why that is not known,
    /// or a tuple of the nanoseconds of the call, the number of activities that were left out, and a tuple of activities. Each is a
    /// tuple of its kind (0 for a kernel, 1 for a copy, 2 for a fill), its start and end in nanoseconds since the begin of the call,
    /// the number of its stream, and a kernel's name. A traced call is clocked by the host.
    pub(super) fn called(
        &self,
        python: Python,
        kernel: &Object,
        call: &Call,
        clocking: &Clocking,
    ) -> Result<(Object, [f64; 2], Object), Failed> {
        let (Some(tracer), Some(device)) = (&self.tracer, &self.device) else {
            let (result, seconds, host) = self.timed(kernel, call, clocking)?;
            return Ok((result, [seconds, host], python.none()?));
        };
        tracer.clear();
        sleep(QUIET);
        let begun = Instant::now();
        let apply = || kernel.apply(&call.arguments, call.keywords.as_ref());
        let result = device.marked(clocking.stream, clocking.hold, apply)?;
        let seconds = begun.elapsed().as_secs_f64();
        let activity = match tracer.call() {
            Ok(call) => told(python, &call)?,
            Err(why) => python.text(&why)?,
        };
        Ok((result, [seconds, 0.0], activity))
    }
}

fn told(python: Python, call: &TracedCall) -> Result<Object, Failed> {
    let activity = |one: &Activity| {
        let work = match one.work {
            Work::Kernel => 0,
            Work::Copy => 1,
            Work::Fill => 2,
        };
        python.tuple(vec![
            python.integer(work)?,
            python.integer(one.start)?,
            python.integer(one.end)?,
            python.integer(i64::from(one.stream))?,
            python.text(&one.name)?,
        ])
    };
    let activities = call
        .activities
        .iter()
        .map(activity)
        .collect::<Result<_, Failed>>()?;
    python.tuple(vec![
        python.integer(call.window as i64)?,
        python.integer(call.left_out as i64)?,
        python.tuple(activities)?,
    ])
}
