//! What a schedule should cost on a device.
//!
//! [`count`] counts exactly. [`estimate()`] is a roofline with waves: good enough to tell an idea that cannot pay from
//! one that may, and its error bar says how little more than that.

mod breakdown;
pub mod count;
pub mod diagnose;
mod estimate;
mod host;
mod simulate;
mod speedup;
mod tiles;
mod timeline;

pub use breakdown::{Breakdown, Part, PartTime};
pub use count::Counts;
pub use diagnose::{Diagnosis, diagnose};
pub use estimate::{Bound, Estimate, MissingFigure, Share, estimate, limit};
pub use host::HostTerm;
pub use simulate::{Simulation, break_down, simulate, timeline};
pub use speedup::{Speedup, predicted_speedup};
pub use timeline::{Activity, Span, Timeline, Track};
