//! The effect of a suite and of each of its problems, with intervals over pairs of processes.

use std::sync::Arc;

use crate::criteria::check_confidence;
use crate::signed_rank::SignedRank;
use crate::summary::{mean, median, middle};
use crate::{Error, Interval, Origin, Sample, student};

/// The effects of a suite and of each of its problems.
///
/// The unit of observation is the pair of processes: all its blocks, of all problems, share the same luck (page placement,
/// core, address layout), so each pair counts once, with its median over pairs of adjacent times in each problem (see
/// [`Sample::process_effects`]) and with the mean over problems in the suite, the log of the geometric mean speed-up.
/// The spread of these holds the spread within processes too.
#[derive(Debug, Clone)]
pub struct Effects {
    /// The suite's geometric mean.
    pub suite: Effect,
    /// Each problem, in the order given.
    pub problems: Vec<Effect>,
}

impl Effects {
    /// The effects of the problems of a suite, all measured by the same processes.
    ///
    /// # Errors
    /// No problem, fewer than 2 processes, problems measured by different processes.
    pub fn of(problems: &[Sample]) -> Result<Self, Error> {
        let processes = check(problems)?;
        let ranks = Arc::new(SignedRank::of(processes));
        let effects: Vec<Vec<f64>> = problems.iter().map(Sample::process_effects).collect();
        let effect = |effects| Effect::of(effects, Arc::clone(&ranks));
        Ok(Self {
            suite: effect(across_problems(&effects)),
            problems: effects.into_iter().map(effect).collect(),
        })
    }
}

/// A typical log speed-up, estimated from one effect a pair of processes.
///
/// What is estimated is the **typical pair**: half of all pairs of processes do better and half worse. It is not the mean:
/// noise from outside, which hits few pairs but those hard, hardly moves it, and no number of pairs worth waiting for bounds
/// the mean, since a class of rare and very slow processes that no pair has shown yet can move it by any amount. What was
/// seen of such processes is told, and can prevent an adoption: see [`SlowPairs`](crate::SlowPairs).
#[derive(Debug, Clone)]
pub struct Effect {
    process_effects: Vec<f64>,
    /// The averages of each two pairs, each with itself included, ascending.
    averages: Vec<f64>,
    middle: f64,
    ranks: Arc<SignedRank>,
}

impl Effect {
    fn of(process_effects: Vec<f64>, ranks: Arc<SignedRank>) -> Self {
        let mut averages = Vec::with_capacity(process_effects.len() * (process_effects.len() + 1) / 2);
        for (place, one) in process_effects.iter().enumerate() {
            averages.extend(process_effects[place..].iter().map(|other| 0.5 * (one + other)));
        }
        averages.sort_by(f64::total_cmp);
        Self {
            middle: middle(&process_effects),
            process_effects,
            averages,
            ranks,
        }
    }

    /// The typical pair: the median of the averages of each two pairs (Hodges & Lehmann 1963), which varies less than the
    /// median of the pairs and withstands as much as a quarter of them being anywhere.
    pub fn estimate(&self) -> f64 {
        median(&self.averages)
    }

    /// The effect of each pair of processes, ascending by their numbers.
    pub fn process_effects(&self) -> &[f64] {
        &self.process_effects
    }

    /// The number of processes it is based on.
    pub fn processes(&self) -> usize {
        self.process_effects.len()
    }

    /// The two-sided interval of the typical pair at `confidence`.
    ///
    /// Its bounds are averages of two pairs (or lie between two such), chosen by the signed-rank distribution, which is exact for every noise that is
    /// symmetric. They surround the centre of skewed noise too, but that lies off the typical pair; so the bound on the
    /// side of the pairs' middle, the mean of the middle three tenths, is moved out by the distance from the estimate to it, and
    /// the interval surrounds both.
    ///
    /// With so few pairs that even their extremes have less confidence (fewer than 8 pairs at 99 %, 10 at 99.8 %), the bounds are
    /// Student's on the mean of the pairs, moved likewise, or the extremes if those are farther out. They assume more, but at such confidences they
    /// are many deviations wide: 36 at three pairs and 99.9 %.
    ///
    /// By simulation (`scripts/reference/typical_study.py`), the intervals of all looks of an open-ended comparison together
    /// miss the typical pair in at most 5 % of comparisons on noise that is normal, heavy-tailed (Student's t with 2
    /// degrees of freedom), log-normal with σ = 0.5 and 1, exponential, or has a class of 10 or 20 % of slow pairs. With a class
    /// of 30 % it is 5.2 %: then there is hardly a typical pair.
    ///
    /// # Errors
    /// A confidence outside (0.5, 1).
    pub fn interval(&self, confidence: f64) -> Result<Interval, Error> {
        check_confidence(confidence)?;
        let attained = self.ranks.place((1.0 - confidence) / 2.0);
        let place = attained.unwrap_or(1.0);
        let last = self.averages.len() as f64;
        let ranked = [self.average_at(place), self.average_at(last + 1.0 - place)];
        let (mut lower, mut upper) = self.reaching_the_middle(self.estimate(), ranked);
        if attained.is_none() {
            let Interval {
                estimate,
                lower: least,
                upper: most,
                ..
            } = self.mean(confidence);
            let (least, most) = self.reaching_the_middle(estimate, [least, most]);
            (lower, upper) = (lower.min(least), upper.max(most));
        }
        Ok(Interval {
            estimate: self.estimate(),
            lower,
            upper,
            origin: Origin::Measured {
                confidence,
                processes: self.processes(),
            },
        })
    }

    /// The mean of the pairs, with Student's interval.
    pub(crate) fn mean(&self, confidence: f64) -> Interval {
        let estimate = mean(&self.process_effects);
        let reach = student::half_width(&self.process_effects, confidence);
        Interval {
            estimate,
            lower: estimate - reach,
            upper: estimate + reach,
            origin: Origin::Measured {
                confidence,
                processes: self.processes(),
            },
        }
    }

    /// One-sided p-value of "the typical log speed-up is at least `threshold`": small when it is surely under it.
    ///
    /// The counterpart of [`Self::interval`]: the least error, on one side, at which the upper bound is under the threshold.
    pub fn p_value_below(&self, threshold: f64) -> f64 {
        let outwards = |centre: f64| (self.middle - centre).max(0.0);
        let shift = outwards(self.estimate());
        let under = self
            .averages
            .partition_point(|average| average + shift < threshold);
        if under == self.averages.len() {
            let shift = outwards(mean(&self.process_effects));
            let by_student = student::p_value_below(&self.process_effects, threshold - shift);
            return self.ranks.tail(1.0).min(by_student);
        }
        if under == 0 {
            return 1.0;
        }
        let [below, above] = [self.averages[under - 1], self.averages[under]];
        let reaching = (self.averages.len() - under) as f64;
        self.ranks
            .tail(reaching + (above + shift - threshold) / (above - below))
    }

    /// The average at a place in ascending order, counted from 1; between two places, between their averages.
    fn average_at(&self, place: f64) -> f64 {
        let [below, above] = [place.floor(), place.ceil()].map(|place| self.averages[place as usize - 1]);
        below + place.fract() * (above - below)
    }

    /// The bounds around `centre` and the same around the pairs' middle, together.
    fn reaching_the_middle(&self, centre: f64, [lower, upper]: [f64; 2]) -> (f64, f64) {
        let shift = self.middle - centre;
        (lower + shift.min(0.0), upper + shift.max(0.0))
    }
}

/// The number of processes that measured all of the problems.
fn check(problems: &[Sample]) -> Result<usize, Error> {
    let expected = problems.first().ok_or(Error::EmptySuite)?.processes();
    if expected.len() < 2 {
        return Err(Error::TooFewProcesses {
            found: expected.len(),
        });
    }
    for (problem, sample) in problems.iter().enumerate() {
        let found = sample.processes();
        if found != expected {
            return Err(Error::UnevenProcesses {
                problem,
                expected,
                found,
            });
        }
    }
    Ok(expected.len())
}

/// The mean over problems of each process's effects. `means[problem][process]` are the processes' log speed-ups.
pub(crate) fn across_problems(means: &[Vec<f64>]) -> Vec<f64> {
    (0..means[0].len())
        .map(|process| mean(&means.iter().map(|problem| problem[process]).collect::<Vec<_>>()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use proptest::prelude::*;

    /// Times of both sides for each process and block.
    type Times = Vec<Vec<(f64, f64)>>;

    fn sample(times: &Times, of: fn(&(f64, f64)) -> (f64, f64)) -> Sample {
        let block = |process, pair| {
            let (baseline, candidate) = of(pair);
            Block::new(process, vec![baseline], vec![candidate])
        };
        let blocks: Vec<Block> = times
            .iter()
            .enumerate()
            .flat_map(|(process, pairs)| pairs.iter().map(move |pair| block(process, pair)))
            .collect();
        Sample::from_blocks(&blocks).unwrap()
    }

    fn interval_of(sample: Sample) -> Interval {
        Effects::of(&[sample]).unwrap().suite.interval(0.95).unwrap()
    }

    fn some_times() -> impl Strategy<Value = Times> {
        prop::collection::vec(prop::collection::vec((1e-4..2e-4, 1e-4..2e-4), 1..6), 2..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn swapping_the_arms_negates_the_interval(times in some_times()) {
            let one = interval_of(sample(&times, |pair| *pair));
            let other = interval_of(sample(&times, |pair| (pair.1, pair.0)));
            prop_assert!(one.lower <= one.estimate && one.estimate <= one.upper);
            prop_assert!((one.estimate + other.estimate).abs() < 1e-12);
            prop_assert!((one.lower + other.upper).abs() < 1e-9);
            prop_assert!((one.upper + other.lower).abs() < 1e-9);
        }

        #[test]
        fn the_unit_of_time_does_not_matter(times in some_times()) {
            let seconds = interval_of(sample(&times, |pair| *pair));
            let nanoseconds = interval_of(sample(&times, |pair| (pair.0 * 1e9, pair.1 * 1e9)));
            prop_assert!((seconds.lower - nanoseconds.lower).abs() < 1e-9);
            prop_assert!((seconds.upper - nanoseconds.upper).abs() < 1e-9);
        }

        #[test]
        fn p_value_and_interval_tell_the_same(times in some_times(), shift in -0.5..1.5f64) {
            let effects = Effects::of(&[sample(&times, |pair| *pair)]).unwrap();
            let interval = effects.suite.interval(0.9).unwrap();
            let threshold = interval.lower + shift * (interval.upper - interval.lower);
            let p_value = effects.suite.p_value_below(threshold);
            prop_assert_eq!(p_value <= 0.05, threshold > interval.upper, "{}", p_value);
        }
    }

    #[test]
    fn the_suite_is_the_geometric_mean() {
        let quadrupled: Times = vec![vec![(4.0, 1.0); 2]; 3];
        let unchanged: Times = vec![vec![(1.0, 1.0); 5]; 3];
        let suite = [
            sample(&quadrupled, |pair| *pair),
            sample(&unchanged, |pair| *pair),
        ];
        let effects = Effects::of(&suite).unwrap();
        let interval = effects.suite.interval(0.95).unwrap();
        assert!((interval.estimate_fraction() - 1.0).abs() < 1e-12);
        // Nothing varies, so the width is zero too.
        assert!(interval.half_width() < 1e-12);
        assert!((effects.problems[0].estimate() - 4f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn problems_share_their_processes() {
        // A gain of one problem in a process is a loss of the other there: only their mean in each process shows that the suite
        // does not move at all.
        let gains: Times = (1..6).map(|process| vec![(process as f64, 1.0); 3]).collect();
        let suite = [
            sample(&gains, |pair| *pair),
            sample(&gains, |pair| (pair.1, pair.0)),
        ];
        let effects = Effects::of(&suite).unwrap();
        assert!(effects.suite.interval(0.95).unwrap().half_width() < 1e-12);
        assert!(effects.problems[0].interval(0.95).unwrap().half_width() > 0.5);
    }

    #[test]
    fn no_interval_without_replication() {
        let two: Times = vec![vec![(1.0, 1.0); 9]; 2];
        let one: Times = vec![vec![(1.0, 1.0); 9]];
        let error = |suite: &[Sample]| Effects::of(suite).unwrap_err();
        let (two, one) = (sample(&two, |pair| *pair), sample(&one, |pair| *pair));
        assert_eq!(error(&[]), Error::EmptySuite);
        assert_eq!(
            error(std::slice::from_ref(&one)),
            Error::TooFewProcesses { found: 1 }
        );
        assert_eq!(
            error(&[two.clone(), one]),
            Error::UnevenProcesses {
                problem: 1,
                expected: vec![0, 1],
                found: vec![0]
            }
        );
    }

    fn of(effects: &[f64]) -> Effect {
        let times: Times = effects.iter().map(|effect| vec![(effect.exp(), 1.0)]).collect();
        Effects::of(&[sample(&times, |pair| *pair)]).unwrap().suite
    }

    #[test]
    fn bounds_by_hand() {
        // Ten pairs, 1 % apart. P(W ≤ 8) = 25/1024, so at this confidence the ninth average of each end: 0.0 0.5 1.0 1.0 1.5 1.5
        // 2.0 2.0 2.0 ….
        let confidence = 1.0 - 50.0 / 1024.0;
        let even: Vec<f64> = (0..10).map(|place| 0.01 * f64::from(place)).collect();
        let interval = of(&even).interval(confidence).unwrap();
        assert!((interval.estimate - 0.045).abs() < 1e-12);
        assert!(
            (interval.lower - 0.02).abs() < 1e-12 && (interval.upper - 0.07).abs() < 1e-12,
            "{interval:?}"
        );
        // A class of three slow ones moves the lower bound into the gap, and the bound on the side of the middle by the distance
        // between it and the estimate.
        let slow: Vec<f64> = even
            .iter()
            .map(|effect| if *effect < 0.025 { effect - 1.0 } else { *effect })
            .collect();
        let effect = of(&slow);
        let interval = effect.interval(confidence).unwrap();
        assert!((effect.middle - 0.045).abs() < 1e-12);
        assert!(effect.estimate() < 0.045 && interval.lower < -0.4);
        assert!(
            (interval.upper - (0.07 + 0.045 - effect.estimate())).abs() < 1e-12,
            "{interval:?}"
        );
    }

    #[test]
    fn few_pairs_have_students_bounds_or_their_extremes() {
        let three = of(&[0.05, 0.06, 0.07]);
        // t of 0.9995 with two degrees of freedom is 31.599; the standard error is 0.01 / √3.
        let interval = three.interval(0.999).unwrap();
        assert!(
            (interval.upper - (0.06 + 31.599 * 0.01 / 3f64.sqrt())).abs() < 1e-5,
            "{interval:?}"
        );
        // At 75 % the extremes are the bounds: two of eight sign patterns lie on one side.
        let interval = three.interval(0.75).unwrap();
        assert!((interval.lower - 0.05).abs() < 1e-12 && (interval.upper - 0.07).abs() < 1e-12);
        // One odd pair of four moves Student's mean away from the other three, but not the bound on their side under them.
        let odd = of(&[0.05, 0.05, 0.05, -0.3]).interval(0.95).unwrap();
        assert!(odd.upper >= 0.05, "{odd:?}");
    }

    #[test]
    fn a_far_pair_hardly_moves_the_estimate() {
        let mut effects = vec![0.03; 9];
        effects.push(-5.0);
        assert!((of(&effects).estimate() - 0.03).abs() < 1e-12);
    }
}
