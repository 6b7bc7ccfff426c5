//! Persistence of findings: the ledger, and one run's part of it.

mod journal;
pub mod ledger;

pub use journal::{Journal, RecordPlace};
