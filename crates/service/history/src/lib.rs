//! The history of kernels in a git repository.
//!
//! [`series`] puts the times that a ledger holds in the order of commits, joined by the verdicts of comparisons, and [`changes`] proposes
//! where to look. [`search`] finds the commit that made a kernel slower: every step is a comparison that shows something, or shows nothing and
//! blames nobody. [`surroundings`] tells what beside the code has changed.

pub mod changes;
pub mod git;
pub mod recalled;
pub mod search;
pub mod series;
pub mod surroundings;
pub mod worktree;
