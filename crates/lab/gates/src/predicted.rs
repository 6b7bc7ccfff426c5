//! The model's predictions of a change: simulated times, whose spread is the model's own error.
//! Nothing runs, so the device need not be present.

mod bar;
mod comparison;
mod speedup;

pub use comparison::compare_predicted;
pub use speedup::predict;
