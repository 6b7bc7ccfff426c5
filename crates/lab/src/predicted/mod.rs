//! The model as an executor: a round played on a device that is not here. Nothing is run; times are simulated, their
//! spread is the model's own error, and every verdict is marked *predicted*.

mod bar;
mod comparison;
mod host;
mod profile;

use gauntlet_model::{MissingFigure, Simulation, simulate};
use gauntlet_problem::Case;

use crate::candidate::Candidate;
use crate::round::Round;

pub use comparison::compare_predicted;
pub use host::{HostCost, HostError};
pub use profile::profiles;

/// What gates say that would have to run something.
pub const NOT_RUN: &str = "not run: predicted";

/// The time of a candidate on a case, on the round's device and with the host that the round states.
///
/// # Errors
/// [`MissingFigure`] if the device's description lacks a figure without which nothing can be said.
pub fn time(round: &Round, candidate: &Candidate, case: &Case) -> Result<Simulation, MissingFigure> {
    let schedule = candidate.schedule_for(&case.problem, &round.device);
    let host = host::term(round.file().host.as_ref(), schedule);
    simulate(&case.problem, schedule, &round.device, host)
}
