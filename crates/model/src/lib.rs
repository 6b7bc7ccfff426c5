//! What a schedule should cost on a device.
//!
//! [`count`] counts exactly. [`estimate()`] is a roofline with waves: good enough to tell an idea that cannot pay from
//! one that may, and its error bar says how little more than that.

pub mod count;
mod estimate;
mod speedup;
mod tiles;

pub use count::Counts;
pub use estimate::{Bound, Estimate, MissingFigure, Share, estimate, limit};
pub use speedup::{Speedup, predicted_speedup};
