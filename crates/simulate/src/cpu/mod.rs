//! The CPU executor, event by event.
//!
//! What a primitive costs comes from a calibration; what a call is made of follows the executor: the operand that
//! stays is dequantised first, then tiles are dealt out in the schedule's order and computed step by step, and split
//! sums are reduced at the end. Without a calibration only products cost anything, at the processor's peak.

mod attention;
mod curve;
mod gemm;
mod rates;
mod run;
mod work;

use gauntlet_device::Device;
use gauntlet_operations::Schedule;
use gauntlet_operations::{Form, Operation};

use crate::breakdown::{Breakdown, Part, PartTime};
use crate::count;
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::simulate::Simulation;
use crate::timeline::{Activity, Span, Timeline, Track};

use rates::{Family, Rates, Wanted};
use run::{Outcome, run};
use work::Work;

/// Where the time of a call goes, in the words and the units in which the executor traces it: thread-seconds, all but
/// `setup` adding up to the kernel's time × threads.
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
    /// Waiting for one another.
    pub wait: f64,
}

/// See [`crate::simulate()`].
pub(crate) fn simulate(
    problem: &Operation,
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

/// See [`crate::break_down`]. Each part is what the call would save if its cause cost nothing, the causes taken away
/// one after another in the order of this function: what two causes share goes to the one that is taken away first.
pub(crate) fn break_down(
    problem: &Operation,
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
        // Never more than is left: a list of tiles can take longer with less work in it.
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
    // Register blocks that are begun and ended: their sums come and go.
    take(Part::FillAndDrain, roofline);
    Ok(Breakdown {
        roofline,
        parts: parts.into(),
    })
}

/// A cause, and what thinks it away.
type Removal = (Part, fn(&mut Rates));

/// Causes in the order in which they are taken away.
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
    problem: &Operation,
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

/// What the executor's own trace of the call should say.
///
/// # Errors
/// As [`crate::simulate()`].
pub fn cpu_phases(
    problem: &Operation,
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

fn rates(problem: &Operation, schedule: &Schedule, device: &Device) -> Result<Rates, MissingFigure> {
    let family = match problem {
        Operation::GroupedGemm(gemm) => Family::Gemm {
            dual: gemm.form == Form::Swiglu,
        },
        Operation::Attention(attention) => Family::Attention(attention.format),
    };
    let wanted = Wanted {
        output: problem.output_format(),
        epilogue: schedule.epilogue,
        order: schedule.order,
        family,
    };
    Rates::of(device, wanted)
}

fn work(problem: &Operation, schedule: &Schedule, rates: &Rates) -> Work {
    match problem {
        Operation::GroupedGemm(gemm) => gemm::work(gemm, schedule, rates),
        Operation::Attention(attention) => attention::work(attention, schedule, rates),
    }
}

/// Products of the problem in full register blocks on all threads, or its operands moved once.
fn roofline(problem: &Operation, work: &Work, rates: &Rates) -> (f64, Bound) {
    let compute = work.useful / rates.threads as f64;
    let memory = count::bytes(problem) / rates.memory;
    if memory >= compute {
        (memory, Bound::Memory)
    } else {
        (compute, Bound::Compute)
    }
}
