//! Is the candidate faster? Pairs of fresh worker processes, alternating blocks, planned looks, and the checks that
//! both sides behave honestly while they are timed.

mod conduct;
mod dealing;
mod device;
mod heating;
mod pair;
mod paired;
mod placement;
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

pub use conduct::CaseConduct;
pub use paired::{Batch, Observations, PairedComparison};
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
    Ok(measure_observed(workshop, setting, [baseline, candidate], allowed, observer)?.0)
}

/// The same, with what is kept so that pairs can be added ([`measure_more`]).
pub fn measure_observed(
    workshop: &Workshop,
    setting: &Setting,
    [baseline, candidate]: [&Candidate; 2],
    allowed: Duration,
    observer: &dyn Observer,
) -> Result<(Comparison, Observations), ExaminationFailure> {
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
    contest.finish_observed()
}

/// Adds pairs to a comparison that ended: at least this many, and on to the next look of its plan, unless an earlier look
/// decides. There is no look in between, since the user chose the number after seeing the figures. Without a number it goes on as if
/// it had never ended, in the time that its budget leaves.
pub fn measure_more(
    workshop: &Workshop,
    setting: &Setting,
    [baseline, candidate]: [&Candidate; 2],
    so_far: (&Comparison, &Observations),
    pairs: Option<usize>,
    observer: &dyn Observer,
) -> Result<(Comparison, Observations), ExaminationFailure> {
    let sides = [baseline.clone(), candidate.clone()];
    let mut contest = PairedComparison::resume(workshop, setting, sides, so_far, rand::random())?;
    let enough = pairs.map_or(usize::MAX, |pairs| contest.pairs() + pairs);
    let spent = so_far.0.spent.map_or(0.0, |spent| spent.total());
    let allowed = match pairs {
        Some(_) => Duration::MAX,
        None => {
            let spent = Duration::try_from_secs_f64(spent).unwrap_or(Duration::MAX);
            setting.measurement.budget.unsigned_abs().saturating_sub(spent)
        }
    };
    while !contest.is_over() && contest.pairs() < enough {
        let left = allowed.saturating_sub(contest.spent());
        if !contest.advance(left, observer)? {
            break;
        }
    }
    contest.finish_observed()
}
