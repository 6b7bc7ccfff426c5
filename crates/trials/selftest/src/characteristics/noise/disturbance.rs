//! The disturbances of a machine, each kind with its state.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};
use std::sync::LazyLock;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

use super::{Noise, normal};

/// How far each of 2,656 pairs of fresh processes strayed from its comparison, as a log: those of the real comparisons in
/// `results/xeon-amx/selftest/2026-11-21.json` with at least 4 pairs. Their standard deviation is 3.4 %, and half of them lie within
/// 1 %.
pub static PAIRS: LazyLock<Vec<f64>> =
    LazyLock::new(|| serde_json::from_str(include_str!("pairs.json")).unwrap_or_default());

/// The period of [`crate::burner`] in seconds, and the part of it in which it burns.
const BURNER_PERIOD: f64 = 0.1;
const BURNER_ON: f64 = 0.03;
/// The additional time of a call meanwhile, as a fraction: a call on two threads, one of which shares its processor with
/// the burner, takes up to twice as long. Chosen within that.
const BURNER_STRENGTH: (f64, f64) = (0.5, 1.0);

/// How far the clock falls while the machine warms up, as a log: from turbo to the sustained clock.
const WARMING: f64 = 0.10;
/// Time constant of that fall in seconds: 1/e of it is left after this time.
const WARMING_TIME: f64 = 2.0;
/// Amplitude of the clock governor's oscillation, as a log.
const HUNTING: f64 = 0.02;
/// The oscillation's period in seconds, between a few blocks and a few pairs of processes.
const HUNTING_PERIOD: (f64, f64) = (0.3, 3.0);

/// Distance of each mode from the middle, as a log: a process's operands lie well or badly for the cache.
const MODE: f64 = 0.015;

/// Share of calls that are interrupted.
const OUTLIERS: f64 = 0.03;
/// The least that an interruption adds, as a fraction of the call.
const MIN_OUTLIER: f64 = 0.05;
/// Pareto exponent of the added time: it has a mean, but no variance.
const OUTLIER_EXPONENT: f64 = 1.5;

/// Standard deviation of the slowly varying level shared by successive calls, as a log.
const CORRELATED: f64 = 0.03;
/// Seconds after which the level's correlation has fallen to 1/e: several slots.
const MEMORY: f64 = 0.1;

/// Mean seconds between bursts of the neighbour.
const QUIET: f64 = 1.0;
/// Seconds that a burst lasts.
const BURST: (f64, f64) = (0.01, 0.08);
/// The additional time of a call during a burst, as a fraction.
const BURST_STRENGTH: (f64, f64) = (0.3, 1.0);

/// A kind of disturbance with its state.
pub enum Disturbance {
    None,
    Drift {
        period: f64,
        phase: f64,
    },
    Modes,
    Outliers,
    Correlated {
        level: f64,
        at: f64,
    },
    Neighbour(Burst),
    Recorded {
        /// Seconds into the burner's period, and what its bursts add to a call as a fraction, if there is one.
        burner: Option<(f64, f64)>,
    },
}

/// The neighbour's current or next burst; times in seconds.
pub struct Burst {
    begins: f64,
    ends: f64,
    strength: f64,
}

impl Disturbance {
    /// The disturbance of a machine at time 0, in a random typical state.
    pub fn new(noise: Noise, generator: &mut impl Rng) -> Self {
        match noise {
            Noise::Quiet => Self::Recorded { burner: None },
            Noise::Contested => Self::Recorded {
                burner: Some((
                    generator.random_range(0.0..BURNER_PERIOD),
                    generator.random_range(BURNER_STRENGTH.0..BURNER_STRENGTH.1),
                )),
            },
            Noise::White => Self::None,
            Noise::Drifting => Self::Drift {
                period: generator.random_range(HUNTING_PERIOD.0..HUNTING_PERIOD.1),
                phase: generator.random_range(0.0..TAU),
            },
            Noise::Bimodal => Self::Modes,
            Noise::HeavyTailed => Self::Outliers,
            Noise::Autocorrelated => Self::Correlated {
                level: CORRELATED * normal(generator),
                at: 0.0,
            },
            Noise::NoisyNeighbour => Self::Neighbour(Burst::after(0.0, generator)),
        }
    }

    /// The random cost of a process on each of its calls, as a log.
    pub fn of_process(&mut self, generator: &mut impl Rng) -> f64 {
        match self {
            // The two processes of a pair differ as much as a recorded pair: each has its part, independently.
            Self::Recorded { .. } if !PAIRS.is_empty() => {
                let pair = PAIRS[generator.random_range(0..PAIRS.len())];
                let sign = if generator.random() { 1.0 } else { -1.0 };
                sign * pair * FRAC_1_SQRT_2
            }
            Self::Modes if generator.random() => MODE,
            Self::Modes => -MODE,
            _ => 0.0,
        }
    }

    /// The cost of a call that begins at `now`, as a log.
    pub fn of_call(&mut self, now: f64, generator: &mut impl Rng) -> f64 {
        match self {
            Self::None | Self::Modes => 0.0,
            Self::Recorded { burner } => match burner {
                Some((into, strength)) if (now + *into) % BURNER_PERIOD < BURNER_ON => strength.ln_1p(),
                _ => 0.0,
            },
            Self::Drift { period, phase } => {
                let warmed = 1.0 - (-now / WARMING_TIME).exp();
                WARMING * warmed + HUNTING * (TAU * now / *period + *phase).sin()
            }
            Self::Outliers if generator.random_bool(OUTLIERS) => {
                // A Pareto variate by the inverse distribution function; 1 − u, because u may be 0.
                let tail: f64 = 1.0 - generator.random::<f64>();
                (MIN_OUTLIER * tail.powf(-1.0 / OUTLIER_EXPONENT)).ln_1p()
            }
            Self::Outliers => 0.0,
            Self::Correlated { level, at } => {
                // The Ornstein–Uhlenbeck process, exact for arbitrary sampling times: an AR(1) process whose
                // coefficient follows from the time between samples.
                let kept = (-(now - *at) / MEMORY).exp();
                *level = kept * *level + CORRELATED * (1.0 - kept * kept).sqrt() * normal(generator);
                *at = now;
                *level
            }
            Self::Neighbour(burst) => {
                while burst.ends <= now {
                    *burst = Burst::after(burst.ends, generator);
                }
                if burst.begins <= now {
                    burst.strength.ln_1p()
                } else {
                    0.0
                }
            }
        }
    }
}

impl Burst {
    /// The next burst after a time: bursts form a Poisson process.
    fn after(time: f64, generator: &mut impl Rng) -> Self {
        let wait: f64 = Exp1.sample(generator);
        let begins = time + QUIET * wait;
        Self {
            begins,
            ends: begins + generator.random_range(BURST.0..BURST.1),
            strength: generator.random_range(BURST_STRENGTH.0..BURST_STRENGTH.1),
        }
    }
}

/// The parameters, by name.
pub fn parameters() -> [(&'static str, Vec<f64>); 16] {
    let range = |(least, most): (f64, f64)| vec![least, most];
    [
        ("contested.period", vec![BURNER_PERIOD]),
        ("contested.on", vec![BURNER_ON]),
        ("contested.strength", range(BURNER_STRENGTH)),
        ("drifting.warming", vec![WARMING]),
        ("drifting.warming-time", vec![WARMING_TIME]),
        ("drifting.hunting", vec![HUNTING]),
        ("drifting.hunting-period", range(HUNTING_PERIOD)),
        ("bimodal.mode", vec![MODE]),
        ("heavy-tailed.outliers", vec![OUTLIERS]),
        ("heavy-tailed.least", vec![MIN_OUTLIER]),
        ("heavy-tailed.exponent", vec![OUTLIER_EXPONENT]),
        ("autocorrelated.level", vec![CORRELATED]),
        ("autocorrelated.memory", vec![MEMORY]),
        ("noisy-neighbour.quiet", vec![QUIET]),
        ("noisy-neighbour.burst", range(BURST)),
        ("noisy-neighbour.strength", range(BURST_STRENGTH)),
    ]
}
