//! The decisions that a time budget allows. Before anything is ranked, one pair of processes of each case is timed, and
//! the minimum time of each case is computed from that.

use std::time::{Duration, Instant};

use gauntlet_task::Case;

use super::heats::{FINALISTS, pairs_of_heats};
use super::{Tuning, setting_of};
use crate::error::TuningError;
use gauntlet_judge::Candidate;
use gauntlet_judge::ExaminationFailure;
use gauntlet_judge::Measurement;
use gauntlet_judge::Observer;
use gauntlet_judge::PairedComparison;
use gauntlet_judge::Workshop;

/// The required budget is stated with this factor on top of the pairs: the ranking takes up to [`RANKING_PART`], and
/// pair times vary.
const MARGIN: f64 = 1.5;

/// The fraction of a case's time that the model may use for ranking.
pub const RANKING_PART: f64 = 0.25;

/// The time of one pair of processes for each case.
pub struct Paces(Vec<Duration>);

impl Paces {
    /// Times one pair for each case, with the baseline on both sides.
    ///
    /// # Errors
    /// [`TuningError::ShortBudget`] as soon as it is clear that the budget does not suffice for all cases.
    pub fn measure(
        tuning: &Tuning,
        baselines: &[Candidate],
        workshop: &Workshop,
        observer: &dyn Observer,
    ) -> Result<Self, TuningError> {
        let cases = &tuning.suite.benchmark;
        let mut paces = Vec::new();
        for (case, baseline) in cases.iter().zip(baselines) {
            observer.progress(&format!("{}: timing a pair of processes", case.name));
            paces.push(pace(tuning, case, baseline, workshop, observer)?);
            let needed = needed(&paces);
            if needed > tuning.budget {
                return Err(too_short(tuning.budget, cases, &paces));
            }
        }
        Ok(Self(paces))
    }

    /// The time of a pair for this case.
    pub fn of(&self, case: usize) -> Duration {
        self.0[case]
    }

    /// This case's share of the remaining time, in proportion to the pair times of this case and those after it.
    pub fn share(&self, case: usize, left: Duration) -> Duration {
        let seconds = |paces: &[Duration]| paces.iter().sum::<Duration>().as_secs_f64();
        left.mul_f64(self.0[case].as_secs_f64() / seconds(&self.0[case..]).max(f64::MIN_POSITIVE))
    }
}

fn pace(
    tuning: &Tuning,
    case: &Case,
    baseline: &Candidate,
    workshop: &Workshop,
    observer: &dyn Observer,
) -> Result<Duration, TuningError> {
    let start = Instant::now();
    let setting = setting_of(case, tuning.device, &tuning.measurement);
    let (one, other) = (
        baseline.clone(),
        Candidate {
            name: "baseline again".to_owned(),
            ..baseline.clone()
        },
    );
    // The first pair is measured no matter how little time there is.
    let measured = PairedComparison::new(workshop, &setting, one, other, 0)
        .and_then(|mut contest| contest.advance(Duration::ZERO, observer));
    match measured {
        Err(ExaminationFailure::Judge(error)) => Err(error.into()),
        // Other faults of the baseline are detected and reported when candidates are compared with it.
        Ok(_) | Err(_) => Ok(start.elapsed()),
    }
}

/// The time to decide these cases: the first look at the model's first choice of each.
fn needed(paces: &[Duration]) -> Duration {
    let pairs = u32::try_from(pairs_of_a_look()).unwrap_or(u32::MAX);
    (paces.iter().sum::<Duration>() * pairs).mul_f64(MARGIN)
}

fn too_short(budget: Duration, cases: &[Case], paces: &[Duration]) -> TuningError {
    // For cases that were not timed, only the size is known.
    let work = |cases: &[Case]| {
        cases
            .iter()
            .map(|case| case.sizes.flops().unwrap_or(1) as f64)
            .sum::<f64>()
    };
    let (timed, others) = cases.split_at(paces.len());
    let others = needed(paces).mul_f64(work(others) / work(timed).max(1.0));
    let of_each = paces.iter().sum::<Duration>() / u32::try_from(paces.len()).unwrap_or(u32::MAX).max(1);
    TuningError::ShortBudget {
        budget,
        needed: needed(paces) + others,
        why: format!(
            "a pair of processes takes {of_each:.1?}, and each of {} cases needs {} pairs for a first look at one \
             candidate",
            cases.len(),
            pairs_of_a_look()
        ),
    }
}

/// Pairs of processes before the first decision.
pub fn pairs_of_a_look() -> usize {
    Measurement::default().looks.first().copied().unwrap_or(1)
}

/// How the available pairs are spent on the candidates at the top of the model's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spending {
    /// How many candidates are measured.
    pub rivals: usize,
    /// How many of them are measured again, each at least up to a look.
    pub finalists: usize,
}

impl Spending {
    /// As many candidates as leave time for a look at two finalists; otherwise a look at the model's first choice
    /// alone. Candidates without an interval decide nothing.
    pub fn of(pairs: usize, rivals: usize) -> Self {
        let look = pairs_of_a_look();
        let fits = |rivals: &usize| pairs_of_heats(*rivals) + FINALISTS.min(*rivals) * look <= pairs;
        let rivals = (1..=rivals).rev().find(fits).unwrap_or(rivals.min(1));
        Self {
            rivals,
            finalists: FINALISTS.min(rivals),
        }
    }

    /// Pairs reserved for the finalists.
    pub fn kept(self) -> usize {
        self.finalists * pairs_of_a_look()
    }
}

/// How many pairs fit into the time.
pub fn pairs_within(time: Duration, pace: Duration) -> usize {
    (time.as_secs_f64() / pace.as_secs_f64().max(f64::MIN_POSITIVE)) as usize
}

#[cfg(test)]
mod tests {

    use super::super::heats::PAIRS;
    use super::*;

    #[test]
    fn time_is_spent_on_as_many_rivals_as_can_be_decided_between() {
        let spending = |pairs| Spending::of(pairs, 8);
        let of = |rivals, finalists| Spending { rivals, finalists };
        assert_eq!(pairs_of_a_look(), 4);
        assert_eq!(spending(4), of(1, 1));
        assert_eq!(spending(8), of(2, 2));
        // Three candidates take a heat of two pairs each before the final.
        assert_eq!(spending(13), of(2, 2));
        assert_eq!(spending(14), of(3, 2));
        assert_eq!(spending(8 * PAIRS + 4 * PAIRS + 8), of(8, 2));
        assert_eq!(spending(10_000), of(8, 2));
        assert_eq!(Spending::of(10, 0), of(0, 0));
    }

    #[test]
    fn a_case_has_its_share_and_the_last_all_that_is_left() {
        let paces = Paces([1, 3, 4].map(Duration::from_secs).into());
        let left = Duration::from_secs(80);
        assert_eq!(paces.share(0, left), Duration::from_secs(10));
        assert_eq!(paces.share(2, left), left);
        assert_eq!(pairs_within(left, paces.of(1)), 26);
    }

    #[test]
    fn a_short_budget_names_the_one_that_is_needed_of_all_cases() {
        let cases = &gauntlet_families::suite("group-gemm").unwrap().benchmark;
        let one = too_short(Duration::from_secs(1), &cases[..1], &[Duration::from_secs(2)]);
        let said = one.to_string();
        assert!(
            said.contains("about 12s") && said.contains("takes 2.0s"),
            "{said}"
        );
        let TuningError::ShortBudget { needed, .. } =
            too_short(Duration::from_secs(1), cases, &[Duration::from_secs(2)])
        else {
            panic!("another error");
        };
        assert!(needed > Duration::from_secs(12), "{needed:?}");
    }
}
