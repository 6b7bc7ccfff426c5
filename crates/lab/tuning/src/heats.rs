//! Successive halving: all candidates are measured briefly, the slower half drops out, and the others are measured
//! more.

use std::time::{Duration, Instant};

use gauntlet_judge::ExaminationFailure;
use gauntlet_judge::Observer;
use gauntlet_judge::PairedComparison;

/// The number of finalists.
pub const FINALISTS: usize = 2;

/// Pairs of processes in each heat.
pub const PAIRS: usize = 2;

/// Something that is measured in heats.
pub trait Runner {
    /// Measures up to the end of its next heat; false if the allowed time is too short for that.
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, ExaminationFailure>;
    /// Its log speed-up so far; none before the first pair.
    fn estimate(&self) -> Option<f64>;
    /// Pairs of processes measured.
    fn pairs(&self) -> usize;
}

impl Runner for PairedComparison<'_> {
    fn advance(&mut self, allowed: Duration, observer: &dyn Observer) -> Result<bool, ExaminationFailure> {
        PairedComparison::advance(self, allowed, observer)
    }

    fn estimate(&self) -> Option<f64> {
        PairedComparison::estimate(self)
    }

    fn pairs(&self) -> usize {
        PairedComparison::pairs(self)
    }
}

/// The progress of a runner.
#[derive(Debug)]
pub struct Course {
    /// Heats that it took part in.
    pub heats: usize,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// Its log speed-up at its last measurement.
    pub estimate: Option<f64>,
    /// Why it was not measured to the end; none if it was.
    pub failure: Option<ExaminationFailure>,
}

/// The number of heats that halve this many runners down to the finalists.
pub fn heats_for(runners: usize) -> usize {
    let mut heats = 0;
    let mut left = runners;
    while left > FINALISTS {
        left = survivors(left);
        heats += 1;
    }
    heats
}

/// The total pairs of processes in all heats of this many runners.
pub fn pairs_of_heats(runners: usize) -> usize {
    let mut pairs = 0;
    let mut left = runners;
    while left > FINALISTS {
        pairs += left * PAIRS;
        left = survivors(left);
    }
    pairs
}

fn survivors(runners: usize) -> usize {
    runners.div_ceil(2).max(FINALISTS)
}

/// Runs heats until only the finalists are left or the time is up. Returns the course of each runner, in the order of
/// the runners, and the indices of those left, the fastest first and those that were never measured last. A heat ends
/// early if another pair, at this `pace`, would exceed the allowed time.
pub fn halve<R: Runner>(
    runners: Vec<R>,
    allowed: Duration,
    pace: Duration,
    observer: &dyn Observer,
) -> (Vec<Course>, Vec<usize>) {
    let start = Instant::now();
    let mut courses: Vec<Course> = runners
        .iter()
        .map(|_| Course {
            heats: 0,
            pairs: 0,
            estimate: None,
            failure: None,
        })
        .collect();
    let mut left: Vec<(usize, R)> = runners.into_iter().enumerate().collect();
    let mut in_time = true;
    while left.len() > FINALISTS && in_time {
        let count = left.len();
        let mut next = Vec::new();
        for (place, (index, mut runner)) in left.into_iter().enumerate() {
            let time = allowed.saturating_sub(start.elapsed());
            if time < pace {
                in_time = false;
                next.push((index, runner));
                continue;
            }
            let share = time / u32::try_from(count - place).unwrap_or(u32::MAX);
            let advanced = runner.advance(share, observer);
            let course = &mut courses[index];
            course.heats += 1;
            course.pairs = runner.pairs();
            course.estimate = runner.estimate();
            match advanced {
                Ok(reached) => {
                    in_time &= reached;
                    next.push((index, runner));
                }
                Err(failure) => course.failure = Some(failure),
            }
        }
        let speed = |index: usize| courses[index].estimate.unwrap_or(f64::MIN);
        next.sort_by(|(one, _), (other, _)| speed(*other).total_cmp(&speed(*one)));
        next.truncate(survivors(count));
        left = next;
    }
    left.truncate(FINALISTS);
    (courses, left.into_iter().map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gauntlet_judge::Blind;

    const PACE: Duration = Duration::from_secs(1);

    /// Two pairs for each heat; every pair gives the same speed-up, and its time is only counted.
    struct Fake {
        speed: f64,
        pairs: usize,
        fails: bool,
        slow: bool,
    }

    impl Runner for Fake {
        fn advance(&mut self, _: Duration, _: &dyn Observer) -> Result<bool, ExaminationFailure> {
            if self.fails {
                return Err(ExaminationFailure::Wrong("it computes something else".to_owned()));
            }
            self.pairs += if self.slow { 1 } else { 2 };
            Ok(!self.slow)
        }

        fn estimate(&self) -> Option<f64> {
            (self.pairs > 0).then_some(self.speed)
        }

        fn pairs(&self) -> usize {
            self.pairs
        }
    }

    fn fakes(speeds: &[f64]) -> Vec<Fake> {
        let fake = |speed: &f64| Fake {
            speed: *speed,
            pairs: 0,
            fails: false,
            slow: false,
        };
        speeds.iter().map(fake).collect()
    }

    fn pairs(courses: &[Course]) -> Vec<usize> {
        courses.iter().map(|course| course.pairs).collect()
    }

    #[test]
    fn the_faster_half_goes_on_and_is_measured_more() {
        let speeds = [0.1, 0.5, -0.2, 0.4, 0.0, 0.3, 0.2, -0.1];
        let (courses, left) = halve(fakes(&speeds), Duration::MAX, PACE, &Blind);
        assert_eq!(left, [1, 3]);
        assert_eq!(pairs(&courses), [2, 4, 2, 4, 2, 4, 4, 2]);
        assert_eq!(heats_for(8), 2);
    }

    #[test]
    fn two_need_no_heat() {
        let (courses, left) = halve(fakes(&[0.1, 0.5]), Duration::MAX, PACE, &Blind);
        assert_eq!((pairs(&courses), left, heats_for(2)), (vec![0, 0], vec![0, 1], 0));
    }

    #[test]
    fn what_fails_drops_out_and_says_why() {
        let mut runners = fakes(&[0.9, 0.1, 0.2]);
        runners[0].fails = true;
        let (courses, left) = halve(runners, Duration::MAX, PACE, &Blind);
        assert_eq!(left, [2, 1]);
        assert!(matches!(&courses[0].failure, Some(ExaminationFailure::Wrong(_))));
    }

    #[test]
    fn when_the_time_is_up_the_best_so_far_are_left() {
        let mut runners = fakes(&[0.1, 0.5, 0.3, 0.4, 0.2]);
        runners.iter_mut().for_each(|one| one.slow = true);
        let (courses, left) = halve(runners, Duration::from_secs(3600), PACE, &Blind);
        assert_eq!(left, [1, 3]);
        assert_eq!(pairs(&courses), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn without_time_for_a_pair_nothing_is_measured_and_the_models_order_stands() {
        let runners = fakes(&[0.1, 0.5, 0.3]);
        let (courses, left) = halve(runners, PACE / 2, PACE, &Blind);
        assert_eq!((pairs(&courses), left), (vec![0, 0, 0], vec![0, 1]));
    }

    #[test]
    fn the_pairs_of_all_heats_are_counted() {
        assert_eq!([0, 2, 3, 8].map(pairs_of_heats), [0, 0, 6, 24]);
    }

    #[test]
    fn heats_halve_down_to_the_finalists() {
        assert_eq!([0, 1, 3, 4, 5, 16].map(heats_for), [0, 0, 1, 1, 2, 3]);
    }
}
