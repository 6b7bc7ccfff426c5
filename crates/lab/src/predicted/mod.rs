//! The model as an executor: a round played on a device that is not here. Nothing is run; times are simulated, their
//! spread is the model's own error, and every verdict is marked *predicted*.

mod bar;
mod comparison;
mod host;
mod profile;

pub use comparison::compare_predicted;
pub use host::{HostCost, HostError};
pub use profile::profiles;

/// What gates say that would have to run something.
pub const NOT_RUN: &str = "not run: predicted";
