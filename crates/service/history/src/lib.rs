//! The history of kernels in a git repository.
//!
//! [`series`] puts the times that a ledger holds in the order of commits, joined by the verdicts of comparisons, and [`changes`] proposes
//! where to look. [`surroundings`] tells what beside the code has changed.

pub mod changes;
pub mod git;
pub mod series;
pub mod surroundings;
