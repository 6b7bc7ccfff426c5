//! Pairs of processes that are far from the typical one: what an interval of the typical pair leaves out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::summary::median;
use crate::{Effect, Interval, log_speedup, percent, percent_interval};

/// The least by which a slow pair is off the median of the pairs, as a fraction of speed-up.
const MIN_OFF: f64 = 0.05;

/// And the least number of standard deviations, as the median deviation estimates them, which slow pairs hardly move.
const MIN_DEVIATIONS: f64 = 5.0;

/// What the median absolute deviation of normal values is multiplied by to estimate their standard deviation.
const OF_NORMAL: f64 = 1.4826;

/// With this confidence, a class of slow processes would have shown.
const CONFIDENCE: f64 = 0.95;

/// The pairs of processes in which one side was much slower than in the typical pair, the mean over all pairs, which they
/// move, and what so many pairs cannot show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowPairs {
    /// How many pairs of processes there are.
    pub pairs: usize,
    /// The log speed-up of the pair in which the candidate did worst.
    pub worst: f64,
    /// By how much, in log speed-up, a slow pair is off the median of the pairs at least: by 5 %, and by five standard deviations as
    /// the median absolute deviation estimates them.
    pub limit: f64,
    /// The pairs in which the candidate was slow.
    pub candidate: usize,
    /// The pairs in which the baseline was slow.
    pub baseline: usize,
    /// The mean over all pairs with Student's interval.
    pub mean: Interval,
    /// If the candidate was slow in no pair: the share that slow processes may have, as large as it can be if so many pairs show
    /// one of them with 95 % probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<f64>,
}

impl SlowPairs {
    /// Of a suite's effects; the mean's interval at `confidence`.
    pub(crate) fn of(suite: &Effect, confidence: f64) -> Self {
        let effects = suite.process_effects();
        let typical = median(effects);
        let off: Vec<f64> = effects.iter().map(|effect| (effect - typical).abs()).collect();
        let limit = log_speedup(MIN_OFF).max(MIN_DEVIATIONS * OF_NORMAL * median(&off));
        let candidate = effects.iter().filter(|effect| **effect < typical - limit).count();
        let pairs = effects.len();
        Self {
            pairs,
            worst: effects.iter().copied().fold(f64::INFINITY, f64::min),
            limit,
            candidate,
            baseline: effects.iter().filter(|effect| **effect > typical + limit).count(),
            mean: suite.mean(confidence),
            unseen: (candidate == 0).then(|| 1.0 - (1.0 - CONFIDENCE).powf(1.0 / pairs as f64)),
        }
    }

    /// Whether the candidate was slow in more pairs than the baseline.
    pub fn tell_against_the_candidate(&self) -> bool {
        self.candidate > self.baseline
    }
}

impl fmt::Display for SlowPairs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pairs,
            candidate,
            baseline,
            ..
        } = self;
        write!(formatter, "worst pair {}; ", percent(self.worst.exp_m1()))?;
        match self.unseen {
            Some(unseen) => write!(
                formatter,
                "no slow process of the candidate in {pairs} pairs, which up to {:.0} % of its processes could be without \
                 having shown",
                100.0 * unseen
            )?,
            None => write!(formatter, "the candidate slow in {candidate} of {pairs} pairs")?,
        }
        if *baseline > 0 {
            write!(formatter, ", the baseline in {baseline}")?;
        }
        if *candidate > 0 {
            write!(formatter, "; mean over pairs {}", percent_interval(&self.mean))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Effects, Sample};

    fn of(effects: &[f64]) -> SlowPairs {
        let blocks: Vec<Block> = (0..)
            .zip(effects)
            .map(|(process, effect)| Block::new(process, vec![effect.exp()], vec![1.0]))
            .collect();
        let effects = Effects::of(&[Sample::from_blocks(&blocks).unwrap()]).unwrap();
        SlowPairs::of(&effects.suite, 0.95)
    }

    #[test]
    fn pairs_far_off_are_counted_by_the_side_that_was_slow() {
        let found = of(&[0.03, 0.031, 0.029, -0.2, 0.03, 0.3, 0.032, -0.1]);
        assert_eq!((found.pairs, found.candidate, found.baseline), (8, 2, 1));
        assert!(found.tell_against_the_candidate());
        assert!((found.worst + 0.2).abs() < 1e-12 && found.unseen.is_none());
        assert!((found.mean.estimate - 0.0190).abs() < 1e-9 && found.mean.lower < 0.0);
        assert!(
            found.to_string().starts_with(
                "worst pair −18.1 %; the candidate slow in 2 of 8 pairs, the baseline in 1; mean"
            )
        );
    }

    #[test]
    fn a_spread_of_all_pairs_is_no_class_of_slow_ones() {
        // The median deviation is 0.05: five deviations are 0.37.
        let spread = of(&[-0.1, -0.05, 0.0, 0.05, 0.1, -0.3]);
        assert_eq!((spread.candidate, spread.baseline), (0, 0));
        // Within 5 % of the typical pair, however quiet the others are.
        assert_eq!(of(&[0.0, 0.0, 0.0, -0.048]).candidate, 0);
        assert_eq!(of(&[0.0, 0.0, 0.0, -0.049]).candidate, 1);
    }

    #[test]
    fn what_so_many_pairs_cannot_show_is_said() {
        // 0.95 = 1 − (1 − p)ⁿ.
        for (pairs, share) in [(3, 0.632), (4, 0.527), (12, 0.221), (29, 0.098)] {
            let none = of(&vec![0.03; pairs]);
            assert!((none.unseen.unwrap() - share).abs() < 5e-4, "{pairs}");
        }
        let said = of(&[0.03; 12]).to_string();
        assert_eq!(
            said,
            "worst pair +3.0 %; no slow process of the candidate in 12 pairs, which up to 22 % of its processes could be \
             without having shown"
        );
    }
}
