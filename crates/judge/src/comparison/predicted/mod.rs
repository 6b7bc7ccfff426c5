//! What the model says in place of measurements: simulated times, whose spread is the model's own error, and profiles.
//! Nothing is run, so that the device need not be here; every verdict from such times is marked *predicted*.

mod bar;
mod comparison;
mod profile;
mod speedup;

pub use comparison::compare_predicted;
pub use profile::profiles;
pub use speedup::predict;
