//! How many measurements are needed to see an effect.

use std::f64::consts::FRAC_PI_2;

use crate::criteria::check_confidence;
use crate::effects::across_problems;
use crate::summary::{mean, standard_deviation};
use crate::verdict::decide;
use crate::{Criteria, Decision, Effect, Error, Interval, Origin, Sample, log_speedup, student};

/// The most pairs of processes, or blocks, that a plan may require; more is impractical.
const MAX_PAIRS: usize = 1000;

/// Times of each side in a block, and therefore pairs of adjacent times.
const PAIRS_A_BLOCK: usize = 2;

/// The spread of log speed-ups: the luck of a process, and the additional noise of each of its pairs of adjacent times.
/// A block has two pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Standard deviation between processes that would remain with infinitely many blocks.
    pub between: f64,
    /// Standard deviation between the pairs of a process.
    pub within: f64,
}

impl Spread {
    /// The spread of a suite's mean log speed-up, from a pilot measured by the same processes: the pairs' pooled
    /// variance within processes, and the variance of the process effects (see [`Sample::process_effects`]) that the
    /// pairs do not explain, at least 0. This is the moment estimator of one-way analysis of variance with a random
    /// factor, for medians in place of means.
    ///
    /// None with fewer than 2 processes, with problems measured by different processes, or when some problem
    /// has no process with 2 pairs.
    pub fn estimate(problems: &[Sample]) -> Option<Self> {
        let processes = problems.first()?.processes();
        if processes.len() < 2 || problems.iter().any(|sample| sample.processes() != processes) {
            return None;
        }
        let count = problems.len() as f64;
        let (mut within, mut explained) = (0.0, 0.0);
        for sample in problems {
            let pairs = sample.pairs_by_process();
            let variance = pooled_variance(&pairs)?;
            let shares: Vec<f64> = pairs
                .iter()
                .map(|pairs| variance_of_median(pairs.len()))
                .collect();
            within += variance / (count * count);
            explained += variance * mean(&shares) / (count * count);
        }
        let effects: Vec<Vec<f64>> = problems.iter().map(Sample::process_effects).collect();
        let found = standard_deviation(&across_problems(&effects)).powi(2);
        Some(Self {
            between: (found - explained).max(0.0).sqrt(),
            within: within.sqrt(),
        })
    }

    /// The standard deviation of the effect of a process with this many blocks; the effect is the median over their
    /// pairs.
    pub fn of_process(&self, blocks: usize) -> f64 {
        let pairs = blocks.saturating_mul(PAIRS_A_BLOCK);
        (self.between.powi(2) + self.within.powi(2) * variance_of_median(pairs)).sqrt()
    }
}

/// The variance of the median of `values` independent normal values of variance 1.
///
/// In the limit it is π/2 over their number. For few values the median is nearer to the mean, and for one or two it is
/// the mean: the denominators make these exact, and all others right within 3 %.
fn variance_of_median(values: usize) -> f64 {
    let few = if values.is_multiple_of(2) { 2.0 } else { 1.0 };
    FRAC_PI_2 / (values as f64 + few * (FRAC_PI_2 - 1.0))
}

/// The aim of a plan, with effects as fractions of speed-up (0.02 is 2 % faster).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// The assumed true effect.
    pub effect: f64,
    /// The boundary that the interval must lie on one side of, such as the target.
    pub boundary: f64,
    /// The interval's two-sided confidence; in a sequential plan, that of the look in question.
    pub confidence: f64,
    /// The required probability of success, inside (0, 1).
    pub power: f64,
}

impl Aim {
    fn check(&self) -> Result<(), Error> {
        check_confidence(self.confidence)?;
        let wrong = |name, value, rule| Err(Error::Criterion { name, value, rule });
        for (name, value) in [("effect", self.effect), ("boundary", self.boundary)] {
            if !(value > -1.0 && value.is_finite()) {
                return wrong(name, value, "must be finite and greater than -1");
            }
        }
        if !(self.power > 0.0 && self.power < 1.0) {
            return wrong(
                "power",
                self.power,
                "must lie between 0 and 1, both excluded (0.8 is usual)",
            );
        }
        Ok(())
    }

    fn reached(&self, spread: &Spread, processes: usize, blocks: usize) -> bool {
        chance(spread, processes, blocks, self) >= self.power
    }
}

/// The probability that the interval from this many pairs of processes and blocks lies on the effect's side of the
/// boundary; `aim.power` is ignored.
///
/// Based on Student's interval on normal process effects, by the noncentral t distribution. The reported interval is a little
/// wider on such effects (see [`Effect::interval`]), so the true probability is mostly a little less; with skewed noise it is
/// less, and with heavy tails more.
///
/// # Errors
/// An aim that makes no sense.
pub fn power(spread: &Spread, processes: usize, blocks: usize, aim: &Aim) -> Result<f64, Error> {
    aim.check()?;
    Ok(chance(spread, processes, blocks, aim))
}

/// How many pairs of processes with `blocks` blocks each reach the aim; none when 1,000 do not, for example because the
/// effect lies on the boundary.
///
/// # Errors
/// An aim that makes no sense.
pub fn required_processes(spread: &Spread, blocks: usize, aim: &Aim) -> Result<Option<usize>, Error> {
    aim.check()?;
    Ok(least(2, |processes| aim.reached(spread, processes, blocks)))
}

/// How many blocks in each of `processes` pairs of processes reach the aim; none when 1,000 do not: more blocks do not
/// average out the luck of a process.
///
/// # Errors
/// An aim that makes no sense.
pub fn required_blocks(spread: &Spread, processes: usize, aim: &Aim) -> Result<Option<usize>, Error> {
    aim.check()?;
    Ok(least(1, |blocks| aim.reached(spread, processes, blocks)))
}

/// How many pairs of processes an inconclusive comparison would have needed: the number, greater than the actual one,
/// at which an interval decides that lies around the same estimate, and narrows with more pairs as Student's does. None when
/// 1,000 do not: the estimate lies on a boundary or very near one.
///
/// For orientation only: estimate and spread are themselves uncertain, and with that number about half of all
/// repetitions would decide. To plan a repetition use [`required_processes`].
pub fn needed_processes(effect: &Effect, criteria: &Criteria, confidence: f64) -> Option<usize> {
    let estimate = effect.estimate();
    let half_width = effect.interval(confidence).ok()?.half_width();
    let spread = half_width / student::half_width_of(effect.processes(), 1.0, confidence);
    least(effect.processes() + 1, |processes| {
        let reach = student::half_width_of(processes, spread, confidence);
        let interval = Interval {
            estimate,
            lower: estimate - reach,
            upper: estimate + reach,
            origin: Origin::Measured {
                confidence,
                processes,
            },
        };
        decide(Some(&interval), criteria) != Decision::Inconclusive
    })
}

fn chance(spread: &Spread, processes: usize, blocks: usize, aim: &Aim) -> f64 {
    let distance = (log_speedup(aim.effect) - log_speedup(aim.boundary)).abs();
    let deviation = spread.of_process(blocks);
    if distance == 0.0 {
        return (1.0 - aim.confidence) / 2.0;
    }
    if deviation == 0.0 {
        return 1.0;
    }
    student::power(processes, distance / deviation, aim.confidence)
}

/// The least sufficient number from `first` to [`MAX_PAIRS`], given that all numbers above a sufficient one suffice.
fn least(first: usize, suffices: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut low, mut high) = (first, MAX_PAIRS + 1);
    while low < high {
        let middle = low.midpoint(high);
        if suffices(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low <= MAX_PAIRS).then_some(low)
}

/// The variance of pairs around their process' mean; none when no process has two.
fn pooled_variance(processes: &[&[f64]]) -> Option<f64> {
    let freedom: usize = processes.iter().map(|pairs| pairs.len() - 1).sum();
    let squares: f64 = processes
        .iter()
        .map(|pairs| {
            let centre = mean(pairs);
            pairs.iter().map(|effect| (effect - centre).powi(2)).sum::<f64>()
        })
        .sum();
    (freedom > 0).then(|| squares / freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Effects};
    use proptest::prelude::*;

    const AIM: Aim = Aim {
        effect: 0.05,
        boundary: 0.02,
        confidence: 0.95,
        power: 0.9,
    };

    fn sample(effects: &[&[f64]]) -> Sample {
        let block = |(process, effect): (usize, &f64)| Block::new(process, vec![effect.exp()], vec![1.0]);
        let each = effects.iter().enumerate();
        let blocks: Vec<Block> = each
            .flat_map(|(process, blocks)| blocks.iter().map(move |effect| block((process, effect))))
            .collect();
        Sample::from_blocks(&blocks).unwrap()
    }

    fn effect(effects: &[&[f64]]) -> Effect {
        Effects::of(&[sample(effects)]).unwrap().suite
    }

    #[test]
    fn spread_by_hand() {
        // Within: (2 · 0.01² + 2 · 0.01²) / 2 = 2e-4. Means 0.01 and 0.05, variance 8e-4; less 2e-4 / 2.
        let spread = Spread::estimate(&[sample(&[&[0.0, 0.02], &[0.04, 0.06]])]).unwrap();
        assert!((spread.within - 2e-4_f64.sqrt()).abs() < 1e-12);
        assert!((spread.between - 7e-4_f64.sqrt()).abs() < 1e-12);
        // One block has two pairs.
        assert!((spread.of_process(1) - 8e-4_f64.sqrt()).abs() < 1e-12);
        // Opposite in two problems: the suite's process effects do not differ at all.
        let opposite = sample(&[&[0.04, 0.06], &[0.0, 0.02]]);
        let suite = Spread::estimate(&[sample(&[&[0.0, 0.02], &[0.04, 0.06]]), opposite]).unwrap();
        assert_eq!(suite.between, 0.0);
        assert!((suite.within - 1e-4_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::estimate(&[sample(&[&[0.1], &[0.2]])]), None);
        assert_eq!(Spread::estimate(&[sample(&[&[0.1, 0.2]])]), None);
        assert_eq!(Spread::estimate(&[]), None);
    }

    #[test]
    fn the_plan_is_the_least_that_reaches_its_power() {
        let spread = Spread {
            between: 0.01,
            within: 0.02,
        };
        let processes = required_processes(&spread, 3, &AIM).unwrap().unwrap();
        assert!(power(&spread, processes, 3, &AIM).unwrap() >= 0.9);
        assert!(power(&spread, processes - 1, 3, &AIM).unwrap() < 0.9);
        let blocks = required_blocks(&spread, 8, &AIM).unwrap().unwrap();
        assert!(power(&spread, 8, blocks, &AIM).unwrap() >= 0.9);
        assert!(power(&spread, 8, blocks - 1, &AIM).unwrap() < 0.9);
    }

    #[test]
    fn what_cannot_be_reached_is_said() {
        let spread = Spread {
            between: 0.05,
            within: 0.01,
        };
        let on_it = Aim { effect: 0.02, ..AIM };
        assert_eq!(required_processes(&spread, 3, &on_it), Ok(None));
        // More blocks do not average out the luck of a process.
        assert_eq!(required_blocks(&spread, 4, &AIM), Ok(None));
        assert!(required_processes(&spread, 3, &AIM).unwrap().is_some());
        for wrong in [
            Aim { power: 1.0, ..AIM },
            Aim { effect: -1.0, ..AIM },
            Aim {
                boundary: f64::NAN,
                ..AIM
            },
            Aim {
                confidence: 95.0,
                ..AIM
            },
        ] {
            assert!(required_processes(&spread, 3, &wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_inconclusive_comparison_is_told_what_it_needed() {
        // Estimate 1.6 %, under T = 2 %: more processes would make it marginal.
        let open = effect(&[&[0.006], &[0.021], &[0.012], &[0.025]]);
        let criteria = Criteria::default();
        let needed = needed_processes(&open, &criteria, 0.95).unwrap();
        let half_width = open.interval(0.95).unwrap().half_width();
        let reach = |processes| {
            half_width * student::half_width_of(processes, 1.0, 0.95) / student::half_width_of(4, 1.0, 0.95)
        };
        let open_at = |processes| open.estimate() + reach(processes) >= criteria.log_target();
        assert!(needed > 4 && !open_at(needed) && open_at(needed - 1), "{needed}");

        let target = criteria.log_target();
        let on_it = effect(&[
            &[target - 0.01],
            &[target + 0.01],
            &[target - 0.02],
            &[target + 0.02],
        ]);
        assert_eq!(needed_processes(&on_it, &criteria, 0.95), None);
    }

    proptest! {
        #[test]
        fn more_spread_needs_more(between in 0.0..0.02f64, within in 0.001..0.02f64, factor in 1.0..2.0f64) {
            let spread = Spread { between, within };
            let wider = Spread { between: between * factor, within: within * factor };
            let (some, more) = (required_processes(&spread, 3, &AIM).unwrap(), required_processes(&wider, 3, &AIM).unwrap());
            prop_assert!(some.unwrap() <= more.unwrap());
        }
    }
}
