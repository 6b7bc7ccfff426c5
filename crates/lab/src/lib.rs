//! Placeholder module header.

pub mod ledger;
