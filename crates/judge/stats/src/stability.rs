//! Was the machine settled during the measurement? Warnings that accompany the verdict and never replace it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::summary::mean;
use crate::{Block, Dependence, Error, Sample, Trend, WarmUp};

/// The level of each warning: a hundred comparisons of one problem on a settled machine get four to five warnings in
/// all.
pub const STABILITY_LEVEL: f64 = 0.01;

/// What the order of blocks and times says about the machine and the measurement. Log units throughout: 0.01 is 1 %. A
/// field is none when there is too little data to examine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stability {
    /// Trend of the log speed-up, block by block within processes: pairing does not remove it, and the interval is
    /// valid only for processes of this length.
    pub effect_within: Option<Trend>,
    /// Trend of the log speed-up, process by process: the processes differed, although the interval assumes that they
    /// do not.
    pub effect_across: Option<Trend>,
    /// Trend of the times of both sides, time by time within processes: pairing removes it if it is slow.
    pub time_within: Option<Trend>,
    /// Trend of the times of both sides, process by process: pairing removes it.
    pub time_across: Option<Trend>,
    /// Warm-up of the times of both sides, at the start of processes.
    pub warm_up: Option<WarmUp>,
    /// Dependence of the log speed-ups of the blocks of a process: how many independent blocks they are worth. The
    /// interval rests on process effects and does not need independent blocks; a plan with more blocks does.
    pub dependence: Option<Dependence>,
}

/// What a [`Stability`] warns of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instability {
    /// The speed-up changes in the course of a process.
    EffectDriftsWithin,
    /// The speed-up changes from process to process.
    EffectDriftsAcross,
    /// Times change in the course of a process.
    TimesDriftWithin,
    /// Times change from process to process.
    TimesDriftAcross,
    /// Processes start slower or faster than they continue.
    WarmUp,
    /// The blocks of a process are correlated.
    DependentBlocks,
}

impl Stability {
    /// Examines the blocks of one problem, in the order measured.
    ///
    /// # Errors
    /// The first block that has no log speed-up.
    pub fn of(blocks: &[Block]) -> Result<Self, Error> {
        let sample = Sample::from_blocks(blocks)?;
        let effects = sample.by_process();
        let times = log_times(blocks);
        let times: Vec<&[f64]> = times.values().map(Vec::as_slice).collect();
        let mean_times: Vec<f64> = times.iter().map(|times| mean(times)).collect();
        Ok(Self {
            effect_within: Trend::of(&effects),
            effect_across: Trend::of(&[&sample.process_effects()]),
            time_within: Trend::of(&times),
            time_across: Trend::of(&[&mean_times]),
            warm_up: WarmUp::of(&times),
            dependence: Dependence::of(&effects),
        })
    }

    /// Everything that is improbable at [`STABILITY_LEVEL`] on a settled machine.
    pub fn warnings(&self) -> Vec<Instability> {
        let trend = |trend: &Option<Trend>| trend.map(|trend| trend.p_value);
        [
            (Instability::EffectDriftsWithin, trend(&self.effect_within)),
            (Instability::EffectDriftsAcross, trend(&self.effect_across)),
            (Instability::TimesDriftWithin, trend(&self.time_within)),
            (Instability::TimesDriftAcross, trend(&self.time_across)),
            (Instability::WarmUp, self.warm_up.map(|warm_up| warm_up.p_value)),
            (
                Instability::DependentBlocks,
                self.dependence.map(|dependence| dependence.p_value),
            ),
        ]
        .into_iter()
        .filter(|(_, p_value)| p_value.is_some_and(|p_value| p_value <= STABILITY_LEVEL))
        .map(|(instability, _)| instability)
        .collect()
    }
}

/// The log times of each process in the order measured, the first, second … times of both sides of a block averaged:
/// the side that runs first differs from block to block, and a missing time of one side must not look like a change.
fn log_times(blocks: &[Block]) -> BTreeMap<usize, Vec<f64>> {
    let mut processes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for block in blocks {
        let pairs = block.baseline.iter().zip(&block.candidate);
        processes
            .entry(block.process)
            .or_default()
            .extend(pairs.map(|(baseline, candidate)| (baseline.ln() + candidate.ln()) / 2.0));
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// 9 processes of 4 blocks of 2 times a side, with white noise of 1 % plus the result of `more`, which is added to
    /// the log times of baseline and candidate in a process, at a block, at one of its two times.
    fn blocks(seed: u64, more: impl Fn(f64, f64, f64) -> (f64, f64)) -> Vec<Block> {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let mut noise = || 0.035 * (generator.random::<f64>() - 0.5);
        let mut measured = Vec::new();
        for process in 0..9 {
            for block in 0..4 {
                let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
                for time in 0..2 {
                    let (to_baseline, to_candidate) =
                        more(f64::from(process), f64::from(block), f64::from(time));
                    baseline.push((to_baseline + noise()).exp());
                    candidate.push((to_candidate + noise()).exp());
                }
                measured.push(Block::new(process as usize, baseline, candidate));
            }
        }
        measured
    }

    fn warnings(more: impl Fn(f64, f64, f64) -> (f64, f64)) -> Vec<Instability> {
        Stability::of(&blocks(1, more)).unwrap().warnings()
    }

    #[test]
    fn each_instability_is_seen_for_what_it_is() {
        use Instability::{
            DependentBlocks, EffectDriftsAcross, EffectDriftsWithin, TimesDriftAcross, TimesDriftWithin,
            WarmUp,
        };
        assert_eq!(warnings(|_, _, _| (0.0, 0.0)), []);
        assert_eq!(
            warnings(|process, _, _| (0.01 * process, 0.01 * process)),
            [TimesDriftAcross]
        );
        let heating = warnings(|_, block, time| (0.01 * (2.0 * block + time), 0.01 * (2.0 * block + time)));
        assert!(
            heating.contains(&TimesDriftWithin) && !heating.contains(&EffectDriftsWithin),
            "{heating:?}"
        );
        let cold = warnings(|_, block, time| {
            if block + time == 0.0 {
                (0.1, 0.1)
            } else {
                (0.0, 0.0)
            }
        });
        assert!(
            cold.contains(&WarmUp) && !cold.contains(&EffectDriftsWithin),
            "{cold:?}"
        );
        assert!(warnings(|_, block, _| (0.0, 0.01 * block)).contains(&EffectDriftsWithin));
        assert!(warnings(|process, _, _| (0.0, 0.01 * process)).contains(&EffectDriftsAcross));
        let modes = warnings(|process, block, _| {
            (
                0.0,
                if (process + block / 2.0).floor() % 2.0 == 0.0 {
                    0.1
                } else {
                    0.0
                },
            )
        });
        assert!(modes.contains(&DependentBlocks), "{modes:?}");
    }

    #[test]
    fn a_settled_machine_is_seldom_warned_of() {
        let warned: usize = (0..400)
            .map(|seed| {
                Stability::of(&blocks(seed, |_, _, _| (0.0, 0.0)))
                    .unwrap()
                    .warnings()
                    .len()
            })
            .sum();
        // Six tests at 1 %: 24 expected, standard deviation under 6.
        assert!(warned <= 42, "{warned} warnings of 400");
    }

    #[test]
    fn too_little_says_nothing() {
        let one = [Block::new(0, vec![1.0], vec![1.0])];
        let stability = Stability::of(&one).unwrap();
        assert_eq!(
            (stability.effect_within, stability.warm_up, stability.dependence),
            (None, None, None)
        );
        assert_eq!(stability.warnings(), []);
        assert!(Stability::of(&[Block::new(0, vec![], vec![1.0])]).is_err());
    }
}
