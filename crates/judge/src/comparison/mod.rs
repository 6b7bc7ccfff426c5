//! Is the candidate faster? Pairs of fresh worker processes, alternating blocks, planned looks, and the checks that
//! both sides behave honestly while they are timed.

mod conduct;
mod dealing;
mod device;
mod heating;
mod pair;
mod paired;
mod placement;
mod predicted;
mod recorded;
mod requests;
mod results;
mod side;
mod slot;
mod warm_up;

use std::time::Duration;

use crate::evidence::{Candidate, Comparison, Setting};
use crate::observer::Observer;
use crate::runner::{ExaminationFailure, Workshop};

pub use paired::PairedComparison;
pub use predicted::{compare_predicted, predict, profiles};
pub use recorded::compare_recorded;

/// Measures a candidate against its baseline until a look decides or the allowed time is over; if the measurement is not
/// open-ended, no longer than planned.
pub fn measure(
    workshop: &Workshop,
    setting: &Setting,
    baseline: &Candidate,
    candidate: &Candidate,
    allowed: Duration,
    observer: &dyn Observer,
) -> Result<Comparison, ExaminationFailure> {
    let mut contest = PairedComparison::new(
        workshop,
        setting,
        baseline.clone(),
        candidate.clone(),
        rand::random(),
    )?;
    while !contest.is_over() {
        let left = allowed.saturating_sub(contest.spent());
        if !contest.advance(left, observer)? {
            break;
        }
    }
    contest.finish()
}
