//! Predicts the time of a schedule on a GPU.
//!
//! [`count`] counts exactly. [`simulate()`] simulates a call event by event, [`break_down`] says where its time goes,
//! and [`estimate()`] adds an error bar. [`Accuracy`](gauntlet_device::Accuracy) holds the recorded errors of such predictions on a device;
//! without a record, or with a poor one, a prediction is only a hint and decides nothing.
//!
//! Everything about a family's kernels comes from its [`Model`]: the tile program of a schedule, the kinds of tiles, and
//! what a step of each reads, converts and multiplies. [`gpu`] holds the terms in which models say so, and the machine
//! that runs them. There is no model of CPUs.
//!
//! ```
//! use gauntlet_device::Device;
//! use gauntlet_parameters::Parameters;
//! use gauntlet_simulate::Subject;
//!
//! let suite = gauntlet_families::suite("group-gemm")?;
//! let sizes = &suite.benchmark[0].sizes;
//! let schedule = sizes.task().parameters().complete(&Parameters::new());
//! let estimate = Subject::of(sizes, &schedule)?.estimate(&Device::builtin("h200")?)?;
//! assert!(estimate.seconds > 1e-6 && estimate.seconds < 1e-2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod breakdown;
pub mod count;
mod estimate;
pub mod gpu;
mod host;
mod levers;
mod problem;
mod speedup;
mod subject;
pub mod tiles;
mod timeline;

pub use breakdown::{Breakdown, Part, PartTime};
pub use count::Counts;
pub use estimate::{Bound, Estimate, MissingFigure, Share, error_bar, estimate, limit, repeated_limit};
pub use gpu::{Simulation, break_down, simulate, timeline};
pub use host::HostTerm;
pub use levers::levers;
pub use problem::{Model, Problem};
pub use speedup::{Speedup, predicted_speedup};
pub use subject::{NoEstimate, Subject, limit_of_sizes, predicted_speedup_of_sizes};
pub use timeline::{Activity, Span, Timeline, Track};
