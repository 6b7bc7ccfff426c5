//! Predicts a schedule's time, its breakdown, and its timeline.

use gauntlet_device::{Arch, Device};
use gauntlet_problems::Schedule;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::breakdown::Breakdown;
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::timeline::Timeline;
use crate::{cpu, gpu};

/// The predicted time of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The whole call, including the host's work.
    pub seconds: f64,
    /// The time at the highest rates, with every operand moved once and no padding.
    pub roofline: f64,
    /// The side that limits the roofline.
    pub bound: Bound,
}

/// The time of one call. The same arguments give bit-identical results.
///
/// # Errors
/// [`MissingFigure`] if the device's description lacks a required figure.
pub fn simulate(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Simulation, MissingFigure> {
    match device.arch {
        Arch::Cpu => cpu::simulate(problem, schedule, device, host),
        _ => gpu::simulate(problem, schedule, device, host),
    }
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
    match device.arch {
        Arch::Cpu => cpu::break_down(problem, schedule, device, host),
        _ => gpu::break_down(problem, schedule, device, host),
    }
}

/// The timeline of the call that [`simulate`] times.
///
/// # Errors
/// As [`simulate`].
pub fn timeline(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, MissingFigure> {
    match device.arch {
        Arch::Cpu => cpu::timeline(problem, schedule, device, host),
        _ => gpu::timeline(problem, schedule, device, host),
    }
}
