//! Model predictions in place of measurements: simulated times, whose spread is the model's own error, and profiles.
//! Nothing runs, so the device need not be present; every verdict from such times is marked *predicted*.

mod bar;
mod comparison;
mod profile;
mod speedup;

pub use comparison::compare_predicted;
pub use profile::profiles;
pub use speedup::predict;
