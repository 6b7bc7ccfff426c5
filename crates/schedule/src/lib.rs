//! How a problem is computed: the words of a schedule, their parser, and what each device accepts.

mod change;
mod choice;
mod constraints;
mod dispatch;
mod distance;
mod pairwise;
pub mod program;
mod read;
pub mod resources;
mod schedule;
mod word;

pub use change::{ScheduleChange, ScheduleError, WordChange};
pub use choice::Choice;
pub use constraints::{Remedy, Violation, accepts, check};
pub use dispatch::{
    DispatchEntry, DispatchError, DispatchEvidence, DispatchTable, Match, ModelChoice, SpeedupRange,
    VERSION as DISPATCH_VERSION,
};
pub use distance::FARTHEST;
pub use pairwise::{Options, pairwise};
pub use schedule::{
    Arithmetic, Cluster, Epilogue, Exponential, Layout, Lookup, Order, Packing, Roles, Schedule, Scores,
    Setup, Tile, Values,
};
pub use word::{Meaning, Word, words};
