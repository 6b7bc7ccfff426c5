//! The simulator for GPUs.
//!
//! A schedule's tile program is interpreted for one multiprocessor of each kind: its roles run concurrently, operations
//! take the time that the schedule's sizes give them on the device's units, and all multiprocessors share memory and
//! cache. `docs/explanation/model.md` says what is measured, what is assumed, and how far predictions have been compared with
//! measurements.

pub mod assumed;
mod breakdown;
mod code;
mod costs;
mod deal;
mod engine;
mod ideal;
mod machine;
mod operations;
mod plan;
mod record;
mod roofline;
mod state;
mod timeline;
mod traffic;
mod work;

use gauntlet_device::Device;
use gauntlet_problems::Schedule;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::breakdown::Breakdown;
use crate::estimate::{Bound, MissingFigure};
use crate::host::HostTerm;
use crate::timeline::Timeline;
pub use traffic::Traffic;

pub use code::Code;
pub use costs::{Conversion, Costs, Read, Results, Setting, Shape, Step, Transfer};
pub use deal::{Deal, Queue, Share};
pub use engine::{Outcome, Scene, run};
pub use ideal::Ideal;
pub use machine::Machine;
use plan::Plan;
use roofline::Roofline;
pub use work::{Bundle, Kind};

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
/// [`MissingFigure`] if the device is not a GPU, or its description lacks a required figure.
pub fn simulate(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Simulation, MissingFigure> {
    let roofline = Roofline::of(problem, device)?;
    let plan = Plan::of(problem, schedule, device)?;
    Ok(Simulation {
        seconds: plan.host(host) + plan.launch() + plan.kernel(Ideal::default()),
        roofline: roofline.seconds(),
        bound: roofline.bound(),
    })
}

/// Steps that a simulation follows on each multiprocessor.
pub(crate) fn steps(problem: &Problem, schedule: &Schedule, device: &Device) -> Result<usize, MissingFigure> {
    Ok(Plan::of(problem, schedule, device)?.steps())
}

/// The time at the highest rates, with every operand moved once except for `kept` bytes, and no padding; `None` if
/// figures are missing.
pub(crate) fn floor(problem: &Problem, device: &Device, kept: f64) -> Option<f64> {
    let roofline = Roofline::beyond(problem, device, kept).ok()?;
    Some(roofline.seconds())
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
    let roofline = Roofline::of(problem, device)?.seconds();
    let plan = Plan::of(problem, schedule, device)?;
    Ok(breakdown::of(&plan, roofline, host))
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
    Ok(timeline::of(&Plan::of(problem, schedule, device)?, host))
}
