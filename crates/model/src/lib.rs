//! What a schedule should cost on a device.
//!
//! [`count`] counts exactly. [`estimate()`] is a roofline with waves: good enough to tell an idea that cannot pay from
//! one that may, and its error bar says how little more than that.

mod breakdown;
pub mod count;
mod estimate;
mod gpu;
mod host;
pub mod prove;
mod simulate;
mod speedup;
mod tiles;
mod timeline;

pub use breakdown::{Breakdown, Part, PartTime};
pub use count::Counts;
pub use estimate::{Bound, Estimate, MissingFigure, Share, estimate, limit};
pub use host::HostTerm;
pub use simulate::{Simulation, break_down, simulate, timeline};
pub use speedup::{Speedup, predicted_speedup};
pub use timeline::{Activity, Span, Timeline, Track};
