//! Recommends what to measure next.

use gauntlet_device::Device;
use gauntlet_parameters::named;
use gauntlet_problems::{GroupedGemm, Operation};
use gauntlet_problems::{Schedule, Tile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::diagnosis::Measurement;
use super::driver::{Amounts, Driver};
use super::information::information;
use super::noise::NOISE;
use super::posterior::Sample;

/// A measurement that would distinguish between explanations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Experiment {
    /// The change from an earlier measurement.
    pub change: Change,
    /// The earlier measurement, counted from 0.
    pub measurement: usize,
    /// The problem to measure.
    pub problem: Operation,
    /// Expected information about which explanation is right, in bits.
    pub information: f64,
    /// The effort in minutes (an assumption, see [`Change::minutes`]).
    pub minutes: f64,
    /// The time in seconds that each explanation predicts, noise included, in the order of the explanations.
    pub predictions: Vec<Credible>,
}

named! {
    /// How a measurement differs from an earlier one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Change {
        /// K limited to one step of the loop.
        OneStep = "K shrunk to one step",
        /// N limited to one tile.
        OneTileWide = "N shrunk to one tile",
        /// Only the first group.
        OneGroup = "the first group alone",
        /// Every group twice.
        TwiceTheGroups = "every group twice",
        /// M twice as large.
        TwiceTheRows = "M doubled",
        /// N twice as large.
        TwiceTheColumns = "N doubled",
        /// K twice as large.
        TwiceTheDepth = "K doubled",
        /// The same problem, with the device's own clock (events in its stream) in addition to the wall clock.
        DeviceClock = "device events beside the wall clock",
    }
}

/// The number of problems that experiments start from: the fastest that were measured.
const BASES: usize = 8;

/// Calls timed in an experiment.
const CALLS: f64 = 1000.0;

/// Experiments with less information than this, in bits, are not worth a measurement.
const WORTHWHILE: f64 = 0.05;

/// Equally likely fractions of the largest cost that noise can hide.
const HIDDEN: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// Midpoints of nine equally likely intervals of a normal distribution.
const NORMAL: [f64; 9] = [-1.593, -0.967, -0.589, -0.282, 0.0, 0.282, 0.589, 0.967, 1.593];

impl Change {
    /// The effort to set up: five minutes to change a size, a quarter of an hour to add another clock. Assumed, not
    /// measured; it only matters that the second takes longer.
    pub fn minutes(self) -> f64 {
        if self == Self::DeviceClock { 15.0 } else { 5.0 }
    }

    /// The problem to measure; `None` if the change has no effect. For attention, only the sequences are varied.
    fn of(self, problem: &Operation, tile: Tile) -> Option<Operation> {
        let mut changed = problem.clone();
        match (&mut changed, self) {
            (_, Self::DeviceClock) => return Some(changed),
            (Operation::GroupedGemm(gemm), _) => self.resize(gemm, tile),
            (Operation::Attention(attention), Self::OneGroup) => attention.sequences.truncate(1),
            (Operation::Attention(attention), Self::TwiceTheGroups) => {
                attention.sequences.extend_from_within(..)
            }
            (Operation::Attention(_), _) => return None,
        }
        (changed != *problem && changed.validate().is_ok()).then_some(changed)
    }

    fn resize(self, gemm: &mut GroupedGemm, tile: Tile) {
        match self {
            Self::OneGroup => gemm.groups.truncate(1),
            Self::TwiceTheGroups => gemm.groups.extend_from_within(..),
            _ => {
                for shape in &mut gemm.groups {
                    match self {
                        Self::OneStep => shape.k = shape.k.min(tile.k),
                        Self::OneTileWide => shape.n = shape.n.min(tile.n),
                        Self::TwiceTheRows => shape.m *= 2,
                        Self::TwiceTheColumns => shape.n *= 2,
                        Self::TwiceTheDepth => shape.k *= 2,
                        Self::OneGroup | Self::TwiceTheGroups | Self::DeviceClock => {}
                    }
                }
            }
        }
    }
}

/// The data of an explanation that experiments need.
pub(super) struct Rival<'e> {
    pub(super) probability: f64,
    pub(super) drivers: &'e [Driver],
    pub(super) samples: &'e [Sample],
    pub(super) noise: f64,
}

/// The experiments worth making: for each change the most informative problem, sorted by information per minute.
pub(super) fn experiments(
    rivals: &[Rival<'_>],
    measurements: &[Measurement],
    schedule: &Schedule,
    device: &Device,
) -> Vec<Experiment> {
    let bases = bases(measurements);
    let best = |change: Change| {
        let candidates = bases.iter().filter_map(|base| {
            let problem = change.of(&measurements[*base].problem, schedule.tile)?;
            let known = measurements
                .iter()
                .any(|measurement| measurement.problem == problem);
            if known && change != Change::DeviceClock {
                return None;
            }
            let amounts = Amounts::of(&problem, schedule, device);
            Some(weigh(change, *base, problem, &amounts, rivals))
        });
        candidates.max_by(|one, other| one.0.rate().total_cmp(&other.0.rate()))
    };
    let mut found: Vec<_> = Change::ALL.into_iter().filter_map(best).collect();
    found.retain(|(experiment, _)| experiment.information >= WORTHWHILE);
    found.sort_by(|(one, _), (other, _)| other.rate().total_cmp(&one.rate()));
    found
        .into_iter()
        .map(|(experiment, amounts)| Experiment {
            predictions: rivals
                .iter()
                .map(|rival| prediction(rival, experiment.change, &amounts))
                .collect(),
            ..experiment
        })
        .collect()
}

/// The fastest of the measured problems, each once.
fn bases(measurements: &[Measurement]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..measurements.len()).collect();
    order.sort_by(|one, other| {
        measurements[*one]
            .seconds
            .total_cmp(&measurements[*other].seconds)
    });
    let mut bases: Vec<usize> = Vec::new();
    for index in order {
        let is_new = |base: &usize| measurements[*base].problem != measurements[index].problem;
        if bases.len() < BASES && bases.iter().all(is_new) {
            bases.push(index);
        }
    }
    bases
}

impl Experiment {
    /// Bits per minute.
    fn rate(&self) -> f64 {
        self.information / self.minutes
    }
}

fn weigh(
    change: Change,
    measurement: usize,
    problem: Operation,
    amounts: &Amounts,
    rivals: &[Rival<'_>],
) -> (Experiment, Amounts) {
    let predicted: Vec<_> = rivals
        .iter()
        .map(|rival| {
            let times = times(rival, change, amounts).map(|(seconds, weight)| (seconds.ln(), weight));
            (rival.probability, times.collect::<Vec<_>>())
        })
        .collect();
    let total: f64 = rivals.iter().map(|rival| rival.probability).sum();
    let mean = |of: &dyn Fn(&Rival<'_>) -> f64| {
        rivals
            .iter()
            .map(|rival| rival.probability * of(rival))
            .sum::<f64>()
            / total
    };
    let seconds = mean(&|rival| {
        let calls = calls(rival, amounts);
        calls.map(|call| call.seconds * call.weight).sum()
    });
    let experiment = Experiment {
        change,
        measurement,
        problem,
        information: information(&predicted, mean(&|rival| rival.noise)),
        minutes: change.minutes() + CALLS * seconds / 60.0,
        predictions: Vec::new(),
    };
    (experiment, amounts.clone())
}

/// The time of a call under one sample.
#[derive(Clone, Copy)]
struct Call {
    /// The whole call.
    seconds: f64,
    /// The part that the caller does not pay.
    on_device: f64,
    weight: f64,
}

fn calls(rival: &Rival<'_>, amounts: &Amounts) -> impl Iterator<Item = Call> {
    rival.samples.iter().map(|sample| {
        let (mut seconds, mut on_device) = (0.0, 0.0);
        for (driver, cost) in rival.drivers.iter().zip(sample.costs) {
            let part = cost * amounts.count(*driver);
            seconds += part;
            if !driver.is_host() {
                on_device += part;
            }
        }
        Call {
            seconds: seconds.max(amounts.roofline),
            on_device: on_device.max(amounts.roofline),
            weight: sample.weight,
        }
    })
}

/// The noise-free measurement: seconds with weights that add up to 1. The device's clock sees the part that the caller
/// does not pay, plus as much more as the noise of the whole call may hide.
fn times(rival: &Rival<'_>, change: Change, amounts: &Amounts) -> impl Iterator<Item = (f64, f64)> {
    let by_device = change == Change::DeviceClock;
    let hidden: &[f64] = if by_device { &HIDDEN } else { &[0.0] };
    calls(rival, amounts).flat_map(move |call| {
        let seconds = if by_device { call.on_device } else { call.seconds };
        hidden.iter().map(move |part| {
            (
                seconds + part * NOISE * call.seconds,
                call.weight / hidden.len() as f64,
            )
        })
    })
}

fn prediction(rival: &Rival<'_>, change: Change, amounts: &Amounts) -> Credible {
    Credible::of(times(rival, change, amounts).flat_map(|(seconds, weight)| {
        NORMAL.map(|node| (seconds * (node * rival.noise).exp(), weight / NORMAL.len() as f64))
    }))
}
