//! One synthetic comparison, measured in the same way as the lab's.

use gauntlet_judge::Measurement;
use gauntlet_stats::{Arm, Block, Criteria, Decision, Sample, block_orders, compare, median};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::effect::Effect;
use super::noise::{Machine, Noise, Process};

/// Seconds of an undisturbed call: between a fifth and a sixth of a slot, so that noise hardly ever changes the number
/// of calls in a slot.
pub const CALL: f64 = 3.6e-3;

/// Seconds of calls collected in a slot, and the most calls in one, as in the lab's comparison.
const SLOT: f64 = 0.02;
const MOST_CALLS: usize = 4096;

/// Warm-up calls of each side, and the number of the baseline's last ones that determine how many calls fill a slot.
const WARM_UP: usize = 3;
const PACE: usize = 3;

/// Seconds that a pair of processes takes to start, to load its operands and to warm up.
pub const SETTING_UP: f64 = 0.3;

/// The times of all calls of both sides, in seconds, in the order in which they were made, the first process's first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    /// Calls of the baseline.
    pub baseline: Vec<f64>,
    /// Calls of the candidate.
    pub candidate: Vec<f64>,
}

/// The outcome of a comparison, and the calls that it is based on.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The lab's decision at its last look.
    pub decision: Decision,
    /// Pairs of processes measured by then.
    pub pairs: usize,
    /// All calls measured by then.
    pub calls: Calls,
    /// The seed of the block orders and of the bootstrap.
    pub seed: u64,
}

/// Compares two sides with a known true difference on a noisy machine. The same seed and stream give the same trial.
pub fn synthetic(
    noise: Noise,
    effect: Effect,
    criteria: &Criteria,
    plan: &Measurement,
    seed: u64,
    stream: u64,
) -> Result<Trial, gauntlet_stats::Error> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    // A separate seed, as the lab draws one for each comparison.
    let order_seed = generator.random();
    let mut machine = Machine::new(noise, generator);
    let mut blocks = Vec::new();
    let mut calls = Calls::default();
    let mut decision = Decision::Inconclusive;
    let mut pairs = 0;
    for (look, until) in plan.looks.iter().enumerate() {
        for process in pairs..*until {
            let orders = block_orders(order_seed, process, plan.blocks);
            let pair = Pair::start(&mut machine, effect);
            blocks.extend(
                orders
                    .into_iter()
                    .map(|order| pair.block(process, order.arms(), &mut machine, &mut calls)),
            );
        }
        pairs = *until;
        let sample = Sample::from_blocks(&blocks)?;
        decision = compare(
            &[("synthetic".to_owned(), sample)],
            criteria,
            look + 1,
            order_seed,
        )?
        .decision;
        if decision != Decision::Inconclusive {
            break;
        }
    }
    Ok(Trial {
        decision,
        pairs,
        calls,
        seed: order_seed,
    })
}

/// A new process for each side, with its true call time, and the number of calls in a slot.
struct Pair {
    baseline: (Process, f64),
    candidate: (Process, f64),
    calls: usize,
}

impl Pair {
    fn start(machine: &mut Machine, effect: Effect) -> Self {
        machine.idle(SETTING_UP);
        let baseline = (machine.start_process(), CALL * (1.0 + effect.on_baseline()));
        let candidate = (machine.start_process(), CALL * (1.0 + effect.on_candidate()));
        for (process, truth) in [baseline, candidate] {
            (0..WARM_UP).for_each(|_| _ = machine.call(process, truth));
        }
        let [call, _] = [baseline, candidate].map(|(process, truth)| {
            let few: Vec<f64> = (0..PACE).map(|_| machine.call(process, truth)).collect();
            median(&few)
        });
        Self {
            baseline,
            candidate,
            calls: ((SLOT / call).ceil() as usize).clamp(1, MOST_CALLS),
        }
    }

    fn block(&self, process: usize, arms: [Arm; 4], machine: &mut Machine, calls: &mut Calls) -> Block {
        let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
        for arm in arms {
            let ((worker, truth), slots, all) = match arm {
                Arm::Baseline => (self.baseline, &mut baseline, &mut calls.baseline),
                Arm::Candidate => (self.candidate, &mut candidate, &mut calls.candidate),
            };
            let slot: Vec<f64> = (0..self.calls).map(|_| machine.call(worker, truth)).collect();
            slots.push(median(&slot));
            all.extend(slot);
        }
        Block::new(process, baseline, candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITERIA: Criteria = Criteria {
        target: 0.02,
        practically_zero: 0.01,
        confidence: 0.95,
        floor: -0.05,
        looks: 3,
        resamples: 500,
    };

    fn taken(noise: Noise, effect: Effect, stream: u64) -> Trial {
        synthetic(noise, effect, &CRITERIA, &Measurement::default(), 5, stream).unwrap()
    }

    #[test]
    fn seed_and_stream_decide() {
        let trial = |stream| taken(Noise::NoisyNeighbour, Effect::NONE, stream);
        assert_eq!(trial(1), trial(1));
        assert_ne!(trial(1).calls, trial(2).calls);
        assert_ne!(trial(1).seed, trial(2).seed);
    }

    #[test]
    fn a_great_effect_is_seen_at_the_first_look_and_none_at_the_last() {
        let slower = taken(Noise::White, Effect::SLOWER, 1);
        assert_eq!((slower.decision, slower.pairs), (Decision::Regression, 4));
        let faster = taken(Noise::White, Effect::FASTER, 1);
        assert_eq!((faster.decision, faster.pairs), (Decision::Adopt, 4));
        let noisy = taken(Noise::Bimodal, Effect::NONE, 1);
        assert_eq!((noisy.decision, noisy.pairs), (Decision::Inconclusive, 12));
    }

    #[test]
    fn slots_are_filled_as_in_the_lab() {
        let Trial { calls, pairs, .. } = taken(Noise::White, Effect::SLOWER, 3);
        // Each side has two slots per block and three blocks, and six calls of 3.6 ms fill 20 ms.
        assert_eq!(calls.baseline.len(), pairs * 3 * 2 * 6);
        assert_eq!(calls.candidate.len(), calls.baseline.len());
    }

    #[test]
    fn the_injected_effect_is_in_the_calls() {
        for noise in Noise::ALL {
            for effect in Effect::INJECTED {
                // Medians over many processes, because a few outliers move means.
                let trials: Vec<Trial> = (0..60).map(|stream| taken(noise, effect, stream)).collect();
                let all = |arm: fn(&Calls) -> &Vec<f64>| -> Vec<f64> {
                    trials
                        .iter()
                        .flat_map(|trial| arm(&trial.calls))
                        .copied()
                        .collect()
                };
                let found =
                    median(&all(|calls| &calls.baseline)).ln() - median(&all(|calls| &calls.candidate)).ln();
                let off = found - effect.log_speedup();
                assert!(off.abs() < 0.006, "{} {effect}: off by {off}", noise.name());
            }
        }
    }
}
