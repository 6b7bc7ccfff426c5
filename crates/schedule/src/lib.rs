//! How a problem is computed: the words of a schedule, their parser, and what each device accepts.

mod change;
mod choice;
mod read;
mod schedule;
mod word;

pub use change::{ScheduleChange, ScheduleError, WordChange};
pub use choice::Choice;
pub use schedule::{Cluster, Epilogue, Lookup, Order, Roles, Schedule, Setup, Tile};
pub use word::{Meaning, Word, words};
