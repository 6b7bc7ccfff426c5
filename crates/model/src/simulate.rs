//! What a schedule will do: its time, where that goes, and what happens when.

use gauntlet_device::{Arch, Device};
use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;
use serde::{Deserialize, Serialize};

use crate::breakdown::{Breakdown, Part, PartTime};
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::timeline::{Activity, Span, Timeline, Track};
use crate::{cpu, waves};

/// What a problem will take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The whole call, the host's work included.
    pub seconds: f64,
    /// The time at the highest rates, every operand moved once, nothing padded.
    pub roofline: f64,
    /// What the roofline is bound by.
    pub bound: Bound,
}

/// The time of one call. The same arguments give the same answer to the bit.
///
/// # Errors
/// [`MissingFigure`] if the device's description lacks a figure without which nothing can be said.
pub fn simulate(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Simulation, MissingFigure> {
    if device.arch == Arch::Cpu {
        return cpu::simulate(problem, schedule, device, host);
    }
    let simulation = waves::simulate(problem, schedule, device)?;
    Ok(Simulation {
        seconds: simulation.seconds + host.seconds(problem.parts().len()),
        ..simulation
    })
}

/// The gap from the roofline to [`simulate`]'s time, in parts that add up to it.
///
/// # Errors
/// As [`simulate`].
pub fn break_down(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Breakdown, MissingFigure> {
    if device.arch == Arch::Cpu {
        return cpu::break_down(problem, schedule, device, host);
    }
    let simulation = simulate(problem, schedule, device, host)?;
    let parts = Part::ALL.map(|part| PartTime {
        part,
        seconds: match part {
            Part::Host => host.seconds(problem.parts().len()),
            Part::Copy => simulation.seconds - simulation.roofline - host.seconds(problem.parts().len()),
            _ => 0.0,
        },
    });
    Ok(Breakdown {
        roofline: simulation.roofline,
        parts: parts.into(),
    })
}

/// What happens when in the call that [`simulate`] times.
///
/// # Errors
/// As [`simulate`].
pub fn timeline(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, MissingFigure> {
    if device.arch == Arch::Cpu {
        return cpu::timeline(problem, schedule, device, host);
    }
    let seconds = simulate(problem, schedule, device, host)?.seconds;
    let span = Span {
        activity: Activity::Multiply,
        start: 0.0,
        end: seconds,
        tile: None,
        step: None,
    };
    Ok(Timeline {
        seconds,
        tracks: vec![Track {
            processor: None,
            alike: 1,
            name: "device".to_owned(),
            spans: vec![span],
        }],
    })
}
