//! Measured blocks, and the log speed-ups taken from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::summary::{mean, median};

/// The times of both arms measured close together in one worker process (one ABBA or BAAB).
///
/// Pairing within the block is what removes slow drift: both arms see the same clock and the same neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// The worker process that measured it; its number is its own in the whole comparison, all looks
    /// included.
    pub process: usize,
    /// Times of the baseline, in seconds.
    pub baseline: Vec<f64>,
    /// Times of the candidate, in seconds.
    pub candidate: Vec<f64>,
}

impl Block {
    /// `ln(median(baseline) / median(candidate))`: positive when the candidate is faster.
    ///
    /// Medians, so that one interrupted call does not carry the block; a log ratio, so that the arms are
    /// symmetric and the unit of time drops out.
    ///
    /// # Errors
    /// An arm without times, or with one that is not positive and finite.
    pub fn log_speedup(&self) -> Result<f64, Error> {
        self.check_arm("baseline", &self.baseline)?;
        self.check_arm("candidate", &self.candidate)?;
        // A difference of logs: the ratio itself can overflow where the logs cannot.
        Ok(median(&self.baseline).ln() - median(&self.candidate).ln())
    }

    fn check_arm(&self, arm: &'static str, times: &[f64]) -> Result<(), Error> {
        if times.is_empty() {
            return Err(Error::EmptyArm {
                arm,
                process: self.process,
            });
        }
        match times.iter().position(|time| !(time.is_finite() && *time > 0.0)) {
            Some(index) => Err(Error::ImpossibleTime {
                arm,
                index,
                process: self.process,
                value: times[index],
            }),
            None => Ok(()),
        }
    }
}

/// The log speed-ups of one problem, by process, in the order in which the blocks came.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    processes: BTreeMap<usize, Vec<f64>>,
}

impl Sample {
    /// Reduces each block to its log speed-up and gathers them by process.
    ///
    /// # Errors
    /// The first block that has no log speed-up.
    pub fn from_blocks(blocks: &[Block]) -> Result<Self, Error> {
        let mut processes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for block in blocks {
            processes
                .entry(block.process)
                .or_default()
                .push(block.log_speedup()?);
        }
        Ok(Self { processes })
    }

    /// The processes that measured, ascending.
    pub fn processes(&self) -> Vec<usize> {
        self.processes.keys().copied().collect()
    }

    /// How many blocks there are in all.
    pub fn blocks(&self) -> usize {
        self.processes.values().map(Vec::len).sum()
    }

    /// The log speed-ups of each process, processes ascending; no list is empty.
    pub fn by_process(&self) -> Vec<&[f64]> {
        self.processes.values().map(Vec::as_slice).collect()
    }

    /// The mean log speed-up of each process, processes ascending: the independent observations.
    pub fn process_means(&self) -> Vec<f64> {
        self.processes.values().map(|effects| mean(effects)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(baseline: &[f64], candidate: &[f64]) -> Block {
        Block {
            process: 7,
            baseline: baseline.to_vec(),
            candidate: candidate.to_vec(),
        }
    }

    #[test]
    fn twice_as_fast_is_ln_2_whatever_the_outlier() {
        let effect = block(&[2.0, 2.0, 90.0], &[1.0, 1.0, 0.9]).log_speedup().unwrap();
        assert!((effect - 2f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn impossible_times_are_named() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = block(&[1.0, 1.0], &[1.0, bad]).log_speedup().unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::ImpossibleTime {
                        arm: "candidate",
                        index: 1,
                        process: 7,
                        ..
                    }
                ),
                "{error}"
            );
        }
        let error = block(&[], &[1.0]).log_speedup().unwrap_err();
        assert_eq!(
            error,
            Error::EmptyArm {
                arm: "baseline",
                process: 7
            }
        );
    }

    #[test]
    fn blocks_are_gathered_by_process() {
        let times = |process, baseline| Block {
            process,
            baseline: vec![baseline],
            candidate: vec![1.0],
        };
        let sample = Sample::from_blocks(&[times(9, 1.0), times(2, 2.0), times(9, 4.0)]).unwrap();
        assert_eq!(sample.processes(), [2, 9]);
        assert_eq!(sample.blocks(), 3);
        assert_eq!(sample.by_process(), [&[2f64.ln()][..], &[0.0, 4f64.ln()][..]]);
        assert_eq!(sample.process_means(), [2f64.ln(), 4f64.ln() / 2.0]);
    }

    proptest! {
        #[test]
        fn swapping_negates_and_units_drop_out(
            baseline in prop::collection::vec(1e-6..1e-2, 1..9),
            candidate in prop::collection::vec(1e-6..1e-2, 1..9),
            unit in 1e-6..1e6,
        ) {
            let effect = block(&baseline, &candidate).log_speedup().unwrap();
            prop_assert_eq!(block(&candidate, &baseline).log_speedup().unwrap(), -effect);
            let scaled = |times: &[f64]| times.iter().map(|time| time * unit).collect::<Vec<_>>();
            let rescaled = block(&scaled(&baseline), &scaled(&candidate)).log_speedup().unwrap();
            prop_assert!((rescaled - effect).abs() < 1e-12);
        }
    }
}
