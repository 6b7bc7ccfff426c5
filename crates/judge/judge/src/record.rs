//! Records of findings: the result of one comparison, the ledger, and one run's part of it.

mod journal;
pub mod ledger;
mod result;

pub use journal::{Journal, RecordPlace};
pub use result::{ComparisonReport, Conditions, Kept, KernelReport};
