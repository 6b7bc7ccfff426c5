//! Tests of the families that come with Gauntlet: one program, since linking one for each file takes longer than the tests.

mod attention;
mod audit;
mod constraints;
mod covering;
mod dispatch;
mod edges;
mod levers;
mod rules;
mod storage;
mod suite_faults;
mod suites;

use gauntlet_families::operations;
use gauntlet_problems::Operation;
use gauntlet_task::Sizes;

/// The sizes of an operation as the judge knows them.
#[expect(clippy::unwrap_used, reason = "tests")]
fn sizes(operation: Operation) -> Sizes {
    operations::sizes(&operation).unwrap()
}
