//! Synthetic machines: on two of them pairs of processes stray as real ones did, each other has one kind of disturbance
//! found on real machines.
//!
//! Time is simulated sequentially: the calls of both sides share one clock, so that time-dependent disturbances (a
//! drift, a neighbour) affect both sides realistically, and the order of blocks matters. Magnitudes are those of a
//! shared cloud machine, where the calls of one process scatter by 1…5 %.

mod disturbance;

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use disturbance::Disturbance;

/// Standard deviation of a call's log time around its process's: jitter of scheduling and memory, independent between
/// calls.
pub const JITTER: f64 = 0.02;

/// Standard deviation of a process's log time: the cost of its particular address layout and page placement. It applies
/// everywhere but in [`Noise::White`], because it affects every real process (Mytkowicz et al. 2009, "Producing Wrong
/// Data Without Doing Anything Obviously Wrong!", measured such differences from environment size and link order).
pub const PROCESS_LUCK: f64 = 0.003;

/// The disturbance of a synthetic machine, in addition to [`JITTER`] and [`PROCESS_LUCK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// Pairs of processes stray as those of real workers did.
    Quiet,
    /// The same beside a process that burns one of two processors for 30 % of the time.
    Contested,
    /// No disturbance, and no differences between processes: the textbook's independent calls.
    White,
    /// The clock falls as the machine warms up, and its governor oscillates.
    Drifting,
    /// Each process lands in a fast or in a slow mode and stays there.
    Bimodal,
    /// Some calls take much longer.
    HeavyTailed,
    /// A slow-down persists over the following calls and fades.
    Autocorrelated,
    /// Another program runs in bursts and slows the side that runs at that time.
    NoisyNeighbour,
}

impl Noise {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Quiet,
        Self::Contested,
        Self::White,
        Self::Drifting,
        Self::Bimodal,
        Self::HeavyTailed,
        Self::Autocorrelated,
        Self::NoisyNeighbour,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Contested => "contested",
            Self::White => "white",
            Self::Drifting => "drifting",
            Self::Bimodal => "bimodal",
            Self::HeavyTailed => "heavy-tailed",
            Self::Autocorrelated => "autocorrelated",
            Self::NoisyNeighbour => "noisy neighbour",
        }
    }

    /// A description of the disturbance, in a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::Quiet => "pairs of processes stray as 2,656 recorded ones of real workers",
            Self::Contested => {
                "the same, beside a process that burns one of two processors for 30 % of the time"
            }
            Self::White => "calls are independent of one another, whatever process makes them",
            Self::Drifting => "the machine warms up and its governor hunts, under both arms alike",
            Self::Bimodal => "each process lands in a fast or in a slow mode and stays there",
            Self::HeavyTailed => "some calls take much longer",
            Self::Autocorrelated => "what slows one call slows those that follow, and fades",
            Self::NoisyNeighbour => "something else runs in bursts, over whichever arm runs then",
        }
    }

    fn process_luck(self) -> f64 {
        match self {
            Self::White => 0.0,
            // The recorded pairs contain it.
            Self::Quiet | Self::Contested => 0.0,
            _ => PROCESS_LUCK,
        }
    }
}

/// A machine with simulated time.
pub struct Machine {
    noise: Noise,
    now: f64,
    disturbance: Disturbance,
    generator: ChaCha8Rng,
}

/// A process on the machine: the slow-down of its calls relative to the truth, as a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    luck: f64,
}

impl Machine {
    /// A machine at time 0.
    pub fn new(noise: Noise, mut generator: ChaCha8Rng) -> Self {
        Self {
            noise,
            now: 0.0,
            disturbance: Disturbance::new(noise, &mut generator),
            generator,
        }
    }

    /// A new process, with its own random cost.
    pub fn start_process(&mut self) -> Process {
        let luck = self.noise.process_luck() * normal(&mut self.generator);
        Process {
            luck: luck + self.disturbance.of_process(&mut self.generator),
        }
    }

    /// The time of one call, in seconds, in a process that would take `truth` on an undisturbed machine. Advances the
    /// clock by that time.
    pub fn call(&mut self, process: Process, truth: f64) -> f64 {
        let jitter = JITTER * normal(&mut self.generator);
        let disturbed = self.disturbance.of_call(self.now, &mut self.generator);
        let time = truth * (process.luck + jitter + disturbed).exp();
        self.now += time;
        time
    }

    /// Seconds since its start.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Lets time pass without a call, in seconds.
    pub fn idle(&mut self, seconds: f64) {
        self.now += seconds;
    }
}

/// The parameters of all kinds, by name: one number, or the ends of a range from which values are drawn.
pub fn parameters() -> BTreeMap<String, Vec<f64>> {
    let own = [("jitter", vec![JITTER]), ("process-luck", vec![PROCESS_LUCK])];
    own.into_iter()
        .chain(disturbance::parameters())
        .map(|(name, values)| (name.to_owned(), values))
        .collect()
}

fn normal(generator: &mut impl Rng) -> f64 {
    StandardNormal.sample(generator)
}

#[cfg(test)]
mod tests {
    use super::disturbance::PAIRS;
    use super::*;
    use gauntlet_stats::median;
    use rand::SeedableRng;

    const TRUTH: f64 = 4e-3;

    fn machine(noise: Noise) -> Machine {
        Machine::new(noise, ChaCha8Rng::seed_from_u64(17))
    }

    /// Log times of calls of one process relative to the truth.
    fn logs(noise: Noise, calls: usize) -> Vec<f64> {
        let mut machine = machine(noise);
        let process = machine.start_process();
        (0..calls)
            .map(|_| (machine.call(process, TRUTH) / TRUTH).ln())
            .collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// The correlation of successive values.
    fn autocorrelation(values: &[f64]) -> f64 {
        let centre = mean(values);
        let product = |pair: &[f64]| (pair[0] - centre) * (pair[1] - centre);
        let together: f64 = values.windows(2).map(product).sum();
        together / values.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
    }

    #[test]
    fn white_calls_are_independent_and_processes_alike() {
        let mut machine = machine(Noise::White);
        let processes = [machine.start_process(), machine.start_process()];
        assert_eq!(processes[0], processes[1]);
        let calls: Vec<f64> = (0..20_000).map(|_| machine.call(processes[0], TRUTH)).collect();
        let variance = calls.iter().map(|call| (call / TRUTH).ln().powi(2)).sum::<f64>() / 20_000.0;
        assert!((variance.sqrt() / JITTER - 1.0).abs() < 0.03);
        assert!(autocorrelation(&calls).abs() < 0.02);
        assert!((mean(&calls) / TRUTH - 1.0).abs() < 1e-3);
    }

    #[test]
    fn every_other_kind_has_processes_of_their_own_luck() {
        for noise in Noise::ALL.into_iter().filter(|noise| *noise != Noise::White) {
            let mut machine = machine(noise);
            let processes: Vec<Process> = (0..5).map(|_| machine.start_process()).collect();
            assert!(
                processes.iter().any(|process| *process != processes[0]),
                "{noise:?}"
            );
        }
    }

    #[test]
    fn recorded_pairs_are_those_of_the_committed_result() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../results/xeon-amx/selftest/2026-11-21.json"
        );
        let result: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut expected = Vec::new();
        for comparison in result["live-comparisons"].as_array().unwrap() {
            let effects = comparison["process-effects"].as_array().unwrap();
            let effects: Vec<f64> = effects.iter().map(|effect| effect.as_f64().unwrap()).collect();
            // With fewer pairs, too much of their spread is in their mean.
            if effects.len() >= 4 {
                let count = effects.len() as f64;
                let centre = mean(&effects);
                expected.extend(
                    effects
                        .iter()
                        .map(|one| (one - centre) * (count / (count - 1.0)).sqrt()),
                );
            }
        }
        assert_eq!(PAIRS.len(), expected.len());
        let off = PAIRS
            .iter()
            .zip(&expected)
            .map(|(one, other)| (one - other).abs());
        assert!(off.fold(0.0, f64::max) < 1e-5);
    }

    #[test]
    fn pairs_of_processes_stray_as_recorded() {
        let mut machine = machine(Noise::Quiet);
        let mut pairs: Vec<f64> = (0..20_000)
            .map(|_| machine.start_process().luck - machine.start_process().luck)
            .collect();
        let deviation = |values: &[f64]| {
            (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
        };
        let ratio = deviation(&pairs) / deviation(&PAIRS);
        assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
        pairs.iter_mut().for_each(|pair| *pair = pair.abs());
        // Half of the recorded pairs are within 1 %; the sum of two independent halves is a little wider.
        assert!((0.009..0.016).contains(&median(&pairs)), "{}", median(&pairs));
    }

    #[test]
    fn a_burner_is_on_for_its_share_of_the_time() {
        let calls = logs(Noise::Contested, 100_000);
        let time: f64 = calls.iter().map(|log| log.exp()).sum();
        // Most calls are undisturbed.
        let typical = median(&calls);
        let hit: f64 = calls
            .iter()
            .filter(|log| **log - typical > 0.3)
            .map(|log| log.exp())
            .sum();
        assert!((hit / time - 0.3).abs() < 0.05, "{}", hit / time);
    }

    #[test]
    fn time_passes_by_calls_and_by_idling() {
        let mut machine = machine(Noise::Autocorrelated);
        let process = machine.start_process();
        let calls = machine.call(process, TRUTH) + machine.call(process, TRUTH);
        machine.idle(1.0);
        assert!((machine.now - 1.0 - calls).abs() < 1e-12);
    }

    #[test]
    fn a_drifting_machine_ends_up_slower_for_all() {
        let drift = logs(Noise::Drifting, 10_000);
        let slower = mean(&drift[9_000..]) - mean(&drift[..50]);
        assert!((slower - 0.10).abs() < 0.03, "{slower}");
        // Neighbouring blocks of calls share the drift: they are far from independent.
        assert!(autocorrelation(&drift) > 0.5);
    }

    #[test]
    fn processes_are_either_fast_or_slow() {
        let mut machine = machine(Noise::Bimodal);
        let luck: Vec<f64> = (0..2000).map(|_| machine.start_process().luck).collect();
        let slow = luck.iter().filter(|luck| **luck > 0.0).count();
        assert!((900..1100).contains(&slow), "{slow}");
        // Five standard deviations of ordinary variation around each mode, and no process between them.
        let lost = luck
            .iter()
            .filter(|luck| (luck.abs() - 0.015).abs() > 5.0 * PROCESS_LUCK);
        assert_eq!(lost.count(), 0);
        let gap = luck.iter().filter(|luck| luck.abs() < 0.003).count();
        assert!(gap < 5, "{gap}");
    }

    #[test]
    fn few_calls_take_much_longer_and_some_very_much() {
        let calls = logs(Noise::HeavyTailed, 100_000);
        let centre = median(&calls);
        // Pareto: a share (least / x)^1.5 of the 3 % exceeds x; jitter moves a few across the border.
        for (excess, expected) in [
            (0.2f64, 0.03 * 0.25f64.powf(1.5)),
            (1.0, 0.03 * 0.05f64.powf(1.5)),
        ] {
            let share = calls.iter().filter(|log| **log - centre > excess.ln_1p()).count() as f64 / 100_000.0;
            assert!(
                (share / expected - 1.0).abs() < 0.25,
                "{excess}: {share}, not {expected}"
            );
        }
        assert!(autocorrelation(&calls).abs() < 0.02);
    }

    #[test]
    fn correlation_fades_as_it_says() {
        // Of the variance 0.03² + 0.02², the first part is shared with the next call, except for a factor e^(−4 ms /
        // 100 ms).
        let shared = 0.03f64.powi(2) / (0.03f64.powi(2) + 0.02f64.powi(2));
        let expected = shared * (-TRUTH / 0.1f64).exp();
        let found = autocorrelation(&logs(Noise::Autocorrelated, 200_000));
        assert!((found - expected).abs() < 0.03, "{found}, not {expected}");
    }

    #[test]
    fn correlation_goes_by_time_and_not_by_calls() {
        let mut machine = machine(Noise::Autocorrelated);
        let process = machine.start_process();
        let apart: Vec<f64> = (0..20_000)
            .map(|_| {
                machine.idle(1.0);
                (machine.call(process, TRUTH) / TRUTH).ln()
            })
            .collect();
        assert!(autocorrelation(&apart).abs() < 0.03);
    }

    #[test]
    fn a_neighbour_comes_in_bursts() {
        let calls = logs(Noise::NoisyNeighbour, 200_000);
        // Above the effect of jitter and process variation, and below that of a burst.
        let hit: Vec<bool> = calls.iter().map(|log| *log > 0.15).collect();
        let time: f64 = calls.iter().map(|log| log.exp()).sum();
        let disturbed: f64 = calls.iter().filter(|log| **log > 0.15).map(|log| log.exp()).sum();
        // 45 ms on average after a second on average.
        let expected = 0.045 / 1.045;
        assert!(
            (disturbed / time / expected - 1.0).abs() < 0.15,
            "{}",
            disturbed / time
        );
        // A hit call is followed by another far more often than by chance.
        let followed = hit.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        let share = followed / hit.iter().filter(|hit| **hit).count() as f64;
        assert!(share > 0.7, "{share}");
        let strength: Vec<f64> = calls.iter().filter(|log| **log > 0.15).copied().collect();
        let least = strength.iter().copied().fold(f64::INFINITY, f64::min);
        let most = strength.iter().copied().fold(0.0, f64::max);
        assert!(least > 0.15 && most < 2f64.ln() + 0.1, "{least} {most}");
    }

    #[test]
    fn every_kind_has_a_name_and_its_parameters() {
        let names: Vec<&str> = Noise::ALL.iter().map(|noise| noise.name()).collect();
        let parameters = parameters();
        for name in &names[3..] {
            let prefix = name.replace(' ', "-");
            assert!(parameters.keys().any(|key| key.starts_with(&prefix)), "{prefix}");
        }
    }
}
