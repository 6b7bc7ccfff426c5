//! What a schedule will do: its time, where that goes, and what happens when.

use gauntlet_device::{Arch, Device};
use gauntlet_operations::Operation;
use gauntlet_operations::Schedule;
use serde::{Deserialize, Serialize};

use crate::breakdown::Breakdown;
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::timeline::Timeline;
use crate::{cpu, gpu};

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
    problem: &Operation,
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
    problem: &Operation,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Breakdown, MissingFigure> {
    match device.arch {
        Arch::Cpu => cpu::break_down(problem, schedule, device, host),
        _ => gpu::break_down(problem, schedule, device, host),
    }
}

/// What happens when in the call that [`simulate`] times.
///
/// # Errors
/// As [`simulate`].
pub fn timeline(
    problem: &Operation,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, MissingFigure> {
    match device.arch {
        Arch::Cpu => cpu::timeline(problem, schedule, device, host),
        _ => gpu::timeline(problem, schedule, device, host),
    }
}
