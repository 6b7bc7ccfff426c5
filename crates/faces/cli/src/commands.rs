//! The commands, one per file.

pub mod audit;
pub mod calibrate;
pub mod check;
pub mod compare;
pub mod compile;
pub mod completions;
pub mod contest;
pub mod cuda;
pub mod devices;
pub mod doctor;
pub mod explain;
pub mod judge;
pub mod ledger;
pub mod man;
pub mod more;
pub mod native;
pub mod report;
pub mod run;
pub mod samples;
pub mod schedules;
pub mod schema;
pub mod selftest;
pub mod suites;
pub mod tune;
pub mod validate;
pub mod worker;
