//! One synthetic comparison, measured in the same way as the lab's.

use gauntlet_judge::Measurement;
use gauntlet_stats::{
    Arm, Block, BlockOrder, Criteria, Decision, LookNumber, Sample, block_orders, compare, median,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::effect::Effect;
use super::estimator::Estimator;
use super::noise::{Machine, Noise, Process};

/// Seconds of an undisturbed call: between a fifth and a sixth of a slot, so that noise hardly ever changes the number
/// of calls in a slot.
pub const CALL: f64 = 3.6e-3;

/// Seconds of calls collected in a slot, and the most calls in one, as in the lab's comparison.
const SLOT: f64 = 0.02;
const MAX_CALLS: usize = 4096;

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
    /// What all calls of each process took together: of the baseline's processes and of the candidate's.
    pub runs: [Vec<f64>; 2],
}

/// The outcome of a comparison, and the calls that it is based on.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The lab's decision at its last look.
    pub decision: Decision,
    /// Pairs of processes measured by then.
    pub pairs: usize,
    /// Seconds that passed until then.
    pub seconds: f64,
    /// The decision if the comparison ends at the last planned look, and spends its error accordingly; none if that is not
    /// known.
    pub planned: Option<Decision>,
    /// All calls measured by then.
    pub calls: Calls,
    /// The seed of the block orders and of the sign-flip test.
    pub seed: u64,
}

/// What is simulated: a machine, a true difference, and how it is compared.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The machine.
    pub noise: Noise,
    /// The true difference.
    pub effect: Effect,
    /// The criteria of the verdict.
    pub criteria: &'a Criteria,
    /// How it is measured; the budget is simulated time.
    pub plan: &'a Measurement,
    /// The call that stands for a slot.
    pub estimator: Estimator,
}

impl Scene<'_> {
    /// Compares the two sides. The same seed and stream give the same trial.
    ///
    /// # Errors
    /// Criteria that make no sense.
    pub fn compare(&self, seed: u64, stream: u64) -> Result<Trial, gauntlet_stats::Error> {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream);
        // Its own seed, as the lab draws one for each comparison.
        let order_seed = generator.random();
        let mut machine = Machine::new(self.noise, generator);
        let budget = self.plan.budget.as_secs_f64();
        let mut measured = Measured::default();
        let mut decision = Decision::Inconclusive;
        let mut planned = None;
        let mut pairs = 0;
        let mut looks = 0;
        while decision == Decision::Inconclusive && !self.plan.ends_at(pairs) {
            let until = self.plan.next_look(pairs);
            let in_time = |machine: &Machine| machine.now() < budget;
            while pairs < until && (pairs < 2 || in_time(&machine)) {
                let orders = block_orders(order_seed, pairs, self.plan.blocks);
                measured.pair(self, pairs, &orders, &mut machine);
                pairs += 1;
            }
            let is_time_up = pairs < until;
            looks += 1;
            let look = match is_time_up && self.criteria.open_ended {
                true => LookNumber::Closing(1),
                false => LookNumber::Fixed(looks),
            };
            decision = self.decide(&measured.blocks, self.criteria, look, order_seed)?;
            planned = self.planned(planned, decision, &measured.blocks, looks, order_seed)?;
            if is_time_up {
                break;
            }
        }
        Ok(Trial {
            decision,
            pairs,
            seconds: machine.now(),
            planned: Some(planned.unwrap_or(Decision::Inconclusive)),
            calls: measured.calls,
            seed: order_seed,
        })
    }

    fn decide(
        &self,
        blocks: &[Block],
        criteria: &Criteria,
        look: LookNumber,
        seed: u64,
    ) -> Result<Decision, gauntlet_stats::Error> {
        let problems = [("synthetic".to_owned(), Sample::from_blocks(blocks)?)];
        Ok(compare(&problems, criteria, look, seed)?.decision)
    }

    /// What a comparison that ends as planned says until this look; it may decide earlier, since none of its error is
    /// kept for later looks. It always decides when the open-ended one does at a
    /// planned look, whose interval is wider.
    fn planned(
        &self,
        before: Option<Decision>,
        now: Decision,
        blocks: &[Block],
        look: usize,
        seed: u64,
    ) -> Result<Option<Decision>, gauntlet_stats::Error> {
        if before.is_some() || look > self.criteria.looks {
            return Ok(before);
        }
        if !self.criteria.open_ended {
            return Ok(Some(now).filter(|now| *now != Decision::Inconclusive));
        }
        let criteria = Criteria {
            open_ended: false,
            ..self.criteria.clone()
        };
        let decision = self.decide(blocks, &criteria, LookNumber::Fixed(look), seed)?;
        Ok(Some(decision).filter(|decision| *decision != Decision::Inconclusive))
    }
}

/// What was measured so far.
#[derive(Default)]
struct Measured {
    blocks: Vec<Block>,
    calls: Calls,
}

impl Measured {
    /// Measures a pair of processes.
    fn pair(&mut self, scene: &Scene, process: usize, orders: &[BlockOrder], machine: &mut Machine) {
        let pair = Pair::start(machine, scene.effect);
        let before = [self.calls.baseline.len(), self.calls.candidate.len()];
        for order in orders {
            let block = pair.block(process, order.arms(), scene.estimator, machine, &mut self.calls);
            self.blocks.push(block);
        }
        let Calls {
            baseline,
            candidate,
            runs,
        } = &mut self.calls;
        for ((all, before), runs) in [baseline, candidate].into_iter().zip(before).zip(runs) {
            runs.push(all[before..].iter().sum());
        }
    }
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
            calls: ((SLOT / call).ceil() as usize).clamp(1, MAX_CALLS),
        }
    }

    fn block(
        &self,
        process: usize,
        arms: [Arm; 4],
        estimator: Estimator,
        machine: &mut Machine,
        calls: &mut Calls,
    ) -> Block {
        let (mut baseline, mut candidate) = (Vec::new(), Vec::new());
        for arm in arms {
            let ((worker, truth), slots, all) = match arm {
                Arm::Baseline => (self.baseline, &mut baseline, &mut calls.baseline),
                Arm::Candidate => (self.candidate, &mut candidate, &mut calls.candidate),
            };
            let slot: Vec<f64> = (0..self.calls).map(|_| machine.call(worker, truth)).collect();
            slots.push(estimator.of(&slot));
            all.extend(slot);
        }
        Block::new(process, baseline, candidate)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const CRITERIA: Criteria = Criteria {
        target: 0.02,
        practically_zero: 0.01,
        confidence: 0.95,
        floor: -0.05,
        looks: 4,
        open_ended: false,
        resamples: 500,
    };

    fn taken_with(open_ended: bool, noise: Noise, effect: Effect, stream: u64) -> Trial {
        let plan = Measurement {
            open_ended,
            budget: SignedDuration::from_secs(20),
            ..Measurement::default()
        };
        let criteria = Criteria {
            open_ended,
            ..CRITERIA
        };
        let scene = Scene {
            noise,
            effect,
            criteria: &criteria,
            plan: &plan,
            estimator: Estimator::LowerQuartile,
        };
        scene.compare(5, stream).unwrap()
    }

    fn taken(noise: Noise, effect: Effect, stream: u64) -> Trial {
        taken_with(false, noise, effect, stream)
    }

    #[test]
    fn seed_and_stream_decide() {
        let trial = |stream| taken(Noise::NoisyNeighbour, Effect::NONE, stream);
        assert_eq!(trial(1), trial(1));
        assert_ne!(trial(1).calls, trial(2).calls);
        assert_ne!(trial(1).seed, trial(2).seed);
    }

    #[test]
    fn a_great_effect_is_seen_at_the_first_look() {
        let slower = taken(Noise::White, Effect::of(-0.2), 1);
        assert_eq!((slower.decision, slower.pairs), (Decision::Regression, 4));
        let faster = taken(Noise::White, Effect::of(0.2), 1);
        assert_eq!((faster.decision, faster.pairs), (Decision::Adopt, 4));
    }

    #[test]
    fn an_undecided_comparison_goes_on_until_its_time_is_up() {
        for stream in 0..4 {
            let planned = taken_with(false, Noise::Bimodal, Effect::NONE, stream);
            assert_eq!((planned.decision, planned.pairs), (Decision::Inconclusive, 12));
            assert_eq!(planned.planned, Some(planned.decision));
            let noisy = taken_with(true, Noise::Bimodal, Effect::NONE, stream);
            assert!(noisy.pairs > 12, "{} pairs", noisy.pairs);
            let decided = noisy.decision != Decision::Inconclusive;
            assert!(
                decided || (20.0..21.0).contains(&noisy.seconds),
                "{} s",
                noisy.seconds
            );
        }
    }

    #[test]
    fn whole_runs_add_up_to_the_calls() {
        let Trial { calls, pairs, .. } = taken(Noise::White, Effect::SLOWER, 3);
        for (runs, calls) in calls.runs.iter().zip([&calls.baseline, &calls.candidate]) {
            assert_eq!(runs.len(), pairs);
            assert!((runs.iter().sum::<f64>() - calls.iter().sum::<f64>()).abs() < 1e-9);
        }
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
