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

use crate::Problem;
use crate::breakdown::Breakdown;
use crate::estimate::MissingFigure;
use crate::host::HostTerm;
use crate::simulate::Simulation;
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

/// As [`crate::simulate()`], on a GPU.
pub(crate) fn simulate(
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

/// As [`crate::break_down()`], on a GPU.
pub(crate) fn break_down(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Breakdown, MissingFigure> {
    let roofline = Roofline::of(problem, device)?.seconds();
    let plan = Plan::of(problem, schedule, device)?;
    Ok(breakdown::of(&plan, roofline, host))
}

/// As [`crate::timeline()`], on a GPU.
pub(crate) fn timeline(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
    host: HostTerm,
) -> Result<Timeline, MissingFigure> {
    Ok(timeline::of(&Plan::of(problem, schedule, device)?, host))
}
