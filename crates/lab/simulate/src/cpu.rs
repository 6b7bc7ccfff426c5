//! Simulates the CPU executor event by event.
//!
//! The costs of primitives come from a calibration; their sequence follows the executor: the resident operand is
//! dequantised first, then tiles are assigned in the schedule's order and computed step by step, and split sums are
//! reduced at the end. Without a calibration only products have a cost, at the processor's peak rate.

mod curve;
mod rates;
mod run;
mod work;

use gauntlet_device::Device;
use gauntlet_problems::Schedule;

use crate::Problem;
use crate::breakdown::{Breakdown, Part, PartTime};
use crate::count;
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::simulate::Simulation;
use crate::timeline::{Activity, Span, Timeline, Track};

pub use curve::Curve;
use rates::Wanted;
pub use rates::{From, Primitives, Rates, RegisterBlock, Side};
pub use run::workers;
use run::{Outcome, run};
pub use work::{StepTimes, TileTimes, Work, buffers, share};

/// Where the time of a call goes, in the terms and units of the executor's traces: thread-seconds, which add up to the
/// kernel's time × threads except for `setup`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuPhases {
    /// Plans, tables and buffers made in the call.
    pub setup: f64,
    /// Dequantising and packing.
    pub load: f64,
    /// Multiplying, the softmax included.
    pub multiply: f64,
    /// Scaling, rounding, writing, reducing.
    pub epilogue: f64,
    /// Waiting for other threads.
    pub wait: f64,
}

/// See [`crate::simulate()`].
pub(crate) fn simulate(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Simulation, MissingFigure> {
    let rates = rates(problem, schedule, device)?;
    let work = work(problem, schedule, &rates);
    let (roofline, bound) = roofline(problem, &work, &rates);
    let kernel = run(&work, schedule, &rates, false).kernel;
    Ok(Simulation {
        seconds: host.seconds(problem, schedule) + (work.setup + kernel).max(roofline),
        roofline,
        bound,
    })
}

/// See [`crate::break_down`]. Each part is the time saved if its cause cost nothing. Causes are removed one after
/// another in the order of this function; time that two causes share goes to the one removed first.
pub(crate) fn break_down(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Breakdown, MissingFigure> {
    let mut rates = rates(problem, schedule, device)?;
    let mut work = self::work(problem, schedule, &rates);
    let (roofline, _) = roofline(problem, &work, &rates);
    let mut parts = Part::ALL.map(|part| PartTime { part, seconds: 0.0 });
    let mut left = (work.setup + run(&work, schedule, &rates, false).kernel).max(roofline);
    let mut give = |part: Part, seconds: f64| {
        parts
            .iter_mut()
            .filter(|entry| entry.part == part)
            .for_each(|entry| entry.seconds += seconds);
    };
    give(Part::Host, host.seconds(problem, schedule));
    let mut take = |part: Part, now: f64| {
        // At most the remaining time: with less work, a list of tiles can take longer.
        let now = now.clamp(roofline, left);
        give(part, left - now);
        left = now;
    };
    take(Part::Host, run(&work, schedule, &rates, false).kernel);
    for (part, removal) in REMOVALS {
        removal(&mut rates);
        work = self::work(problem, schedule, &rates);
        if rates.output_run == 0.0 {
            work.reductions.clear();
        }
        take(part, run(&work, schedule, &rates, false).kernel);
    }
    let threads = rates.threads as f64;
    let outcome = run(&work, schedule, &rates, false);
    take(
        Part::Idle,
        (outcome.load + outcome.multiply + outcome.epilogue) / threads,
    );
    // The start and end of register blocks: loading and storing their sums.
    take(Part::FillAndDrain, roofline);
    Ok(Breakdown {
        roofline,
        parts: parts.into(),
    })
}

/// A cause, and the change that removes it.
type Removal = (Part, fn(&mut Rates));

/// Causes in the order of their removal.
const REMOVALS: [Removal; 6] = [
    (Part::Launch, Rates::without_launches),
    (Part::Barriers, Rates::without_hand_over),
    (Part::Epilogue, Rates::without_epilogue),
    (Part::Conversion, Rates::without_conversion),
    (Part::Copy, Rates::without_distance),
    (Part::Padding, Rates::without_padding),
];

/// See [`crate::timeline()`].
pub(crate) fn timeline(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, MissingFigure> {
    let rates = rates(problem, schedule, device)?;
    let work = work(problem, schedule, &rates);
    let before = host.seconds(problem, schedule) + work.setup;
    let Outcome { kernel, spans, .. } = run(&work, schedule, &rates, true);
    let own = Track {
        processor: None,
        alike: 1,
        name: "set-up".to_owned(),
        spans: vec![Span {
            activity: Activity::Host,
            start: 0.0,
            end: before,
            tile: None,
            step: None,
        }],
    };
    let threads = spans.into_iter().enumerate().map(|(thread, spans)| Track {
        processor: Some(thread),
        alike: 1,
        name: format!("thread {thread}"),
        spans: spans
            .into_iter()
            .map(|span| Span {
                start: span.start + before,
                end: span.end + before,
                ..span
            })
            .collect(),
    });
    Ok(Timeline {
        seconds: before + kernel,
        tracks: std::iter::once(own).chain(threads).collect(),
    })
}

/// The expected content of the executor's own trace of the call.
///
/// # Errors
/// As [`crate::simulate()`].
pub fn cpu_phases(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
) -> Result<CpuPhases, MissingFigure> {
    let rates = rates(problem, schedule, device)?;
    let work = work(problem, schedule, &rates);
    let Outcome {
        kernel,
        load,
        multiply,
        epilogue,
        ..
    } = run(&work, schedule, &rates, false);
    Ok(CpuPhases {
        setup: work.setup,
        load,
        multiply,
        epilogue,
        wait: kernel * rates.threads as f64 - load - multiply - epilogue,
    })
}

fn rates(problem: &Problem, schedule: &Schedule, device: &Device) -> Result<Rates, MissingFigure> {
    let wanted = Wanted {
        output: problem.operation().output_format(),
        epilogue: schedule.epilogue,
        order: schedule.order,
        primitives: problem.model().primitives(),
    };
    Rates::of(device, wanted)
}

fn work(problem: &Problem, schedule: &Schedule, rates: &Rates) -> Work {
    problem.model().cpu_work(schedule, rates)
}

/// The larger of the time of the products in full register blocks on all threads, and the time to move the operands
/// once.
fn roofline(problem: &Problem, work: &Work, rates: &Rates) -> (f64, Bound) {
    let compute = work.useful / rates.threads as f64;
    let memory = count::bytes(problem) / rates.memory;
    if memory >= compute {
        (memory, Bound::Memory)
    } else {
        (compute, Bound::Compute)
    }
}
