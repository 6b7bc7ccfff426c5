//! How a problem is computed: the words of a schedule, their parser, and what each device accepts.

mod schedule;

pub use schedule::{Cluster, Epilogue, Lookup, Order, Roles, Schedule, Setup, Tile};
