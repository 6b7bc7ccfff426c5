//! Synthetic machines, each disturbed in one way that real ones are.
//!
//! Time is simulated as it passes: calls follow one another on one clock, whichever arm makes them, so that what
//! moves with the clock (a drift, a neighbour) hits the arms as it would, and the order of blocks matters.
//! Magnitudes are those of a shared cloud machine, where the calls of one process stray by 1…5 %.

mod disturbance;

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use disturbance::Disturbance;

/// Standard deviation of a call's log time around that of its process: jitter of scheduling and memory that no call
/// shares with the next.
pub const JITTER: f64 = 0.02;

/// Standard deviation of a process's log time: what its address layout and page placement happen to cost it. Everywhere
/// but in [`Noise::White`], because no real process is without (Mytkowicz et al. 2009, "Producing Wrong Data Without
/// Doing Anything Obviously Wrong!", measured such differences of environment size and link order).
pub const PROCESS_LUCK: f64 = 0.003;

/// How a synthetic machine is disturbed, beside [`JITTER`] and [`PROCESS_LUCK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// Not at all, and processes have no luck: the textbook's independent calls.
    White,
    /// The clock falls as the machine warms up, and its governor hunts.
    Drifting,
    /// Each process lands in a fast or in a slow mode and stays there.
    Bimodal,
    /// Some calls take much longer.
    HeavyTailed,
    /// What slows one call slows those that follow, and fades.
    Autocorrelated,
    /// Something else runs in bursts and takes its share from whichever arm runs then.
    NoisyNeighbour,
}

impl Noise {
    /// All of them.
    pub const ALL: [Self; 6] = [
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
            Self::White => "white",
            Self::Drifting => "drifting",
            Self::Bimodal => "bimodal",
            Self::HeavyTailed => "heavy-tailed",
            Self::Autocorrelated => "autocorrelated",
            Self::NoisyNeighbour => "noisy neighbour",
        }
    }

    /// What is wrong with it, in a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::White => "calls are independent of one another, whatever process makes them",
            Self::Drifting => "the machine warms up and its governor hunts, under both arms alike",
            Self::Bimodal => "each process lands in a fast or in a slow mode and stays there",
            Self::HeavyTailed => "some calls take much longer",
            Self::Autocorrelated => "what slows one call slows those that follow, and fades",
            Self::NoisyNeighbour => "something else runs in bursts, over whichever arm runs then",
        }
    }

    fn process_luck(self) -> f64 {
        if self == Self::White { 0.0 } else { PROCESS_LUCK }
    }
}

/// A machine whose time is simulated.
pub struct Machine {
    noise: Noise,
    now: f64,
    disturbance: Disturbance,
    generator: ChaCha8Rng,
}

/// A process on the machine: how much longer than the truth its calls take, as a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    luck: f64,
}

impl Machine {
    /// A machine at the time 0.
    pub fn new(noise: Noise, mut generator: ChaCha8Rng) -> Self {
        Self {
            noise,
            now: 0.0,
            disturbance: Disturbance::new(noise, &mut generator),
            generator,
        }
    }

    /// A fresh process, with a luck of its own.
    pub fn start_process(&mut self) -> Process {
        let luck = self.noise.process_luck() * normal(&mut self.generator);
        Process {
            luck: luck + self.disturbance.of_process(&mut self.generator),
        }
    }

    /// The time of one call, in seconds, of a process that would take `truth` on an undisturbed machine. The clock
    /// moves on by it.
    pub fn call(&mut self, process: Process, truth: f64) -> f64 {
        let jitter = JITTER * normal(&mut self.generator);
        let disturbed = self.disturbance.of_call(self.now, &mut self.generator);
        let time = truth * (process.luck + jitter + disturbed).exp();
        self.now += time;
        time
    }

    /// Lets time pass without a call, in seconds.
    pub fn idle(&mut self, seconds: f64) {
        self.now += seconds;
    }
}

/// The parameters of all kinds, by name: one number, or the ends of a range that is drawn from.
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
