//! Comparisons of this machine's real kernels with themselves and with slowed ones, measured by the judge itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gauntlet_device::Device;
use gauntlet_judge::{Comparison, Measurement, Observer, Setting, Suspicion, Workshop, measure};
use gauntlet_stats::{Block, Criteria, Decision, Interval, Sample};
use gauntlet_task::Suite;
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cell::{Cell, Judged};
use super::effect::Effect;
use super::error::CharacteristicsError;
use super::injected::{Injected, slowed};
use super::trial::{Calls, Trial};
use super::{Observed, injected};

/// The machine's name in tables.
pub const THIS_MACHINE: &str = "this machine";

/// One grouped GEMM, small enough for calls of a few milliseconds.
const SUITE: &str = include_str!("live/suite.toml");

/// One live comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LiveComparison {
    /// The injected effect.
    pub effect: Effect,
    /// The effect that was really injected, measured beside the comparison; none for a thing compared with itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected: Option<Injected>,
    /// The judge's decision.
    pub decision: Decision,
    /// Why the judge distrusts the times, although they are honest: then there is no verdict.
    pub suspicion: Option<Suspicion>,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// The log speed-up at the last look.
    pub interval: Option<Interval>,
    /// The mean log speed-up of each pair of processes: their spread shows the variation between processes on this
    /// machine.
    pub process_effects: Vec<f64>,
    /// The seed of operands, orders and sign flips.
    pub seed: u64,
}

impl LiveComparison {
    /// The true log speed-up: zero for a thing compared with itself, else as measured on the spot.
    pub fn true_log_speedup(&self) -> Option<f64> {
        if self.effect == Effect::NONE {
            return Some(0.0);
        }
        Some(self.injected?.log_speedup(self.effect))
    }
}

/// A live comparison as the judge returned it.
pub struct Measured {
    /// The effect that was asked for.
    pub effect: Effect,
    /// The effect that was really injected.
    pub injected: Option<Injected>,
    /// The comparison.
    pub comparison: Comparison,
}

/// The time of one live comparison, and the simulated time of one on a synthetic machine.
pub const BUDGET: SignedDuration = SignedDuration::from_secs(60);

/// The setting of the live comparisons: default criteria and plan, within a minute. The operands are warm, because rotating a small
/// problem through a large cache takes longer than timing it.
pub fn setting(device: Device) -> Result<Setting, CharacteristicsError> {
    let suite = Suite::parse(SUITE, Path::new("suite.toml"), gauntlet_families::TASKS)?;
    let measurement = Measurement {
        warm: true,
        budget: BUDGET,
        ..Measurement::default()
    };
    Ok(Setting::new(device, &suite, measurement, Criteria::default()))
}

/// The same, and comparisons end at the last planned look: what is found in longer times, [`crate::power`] measures.
fn planned_only(setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    (setting.measurement.open_ended, setting.criteria.open_ended) = (false, false);
    setting
}

/// Measures `comparisons` of the honest worker with itself, and fewer with each effect. `worker` serves the CPU; the
/// argument `--slowed-by` slows it down.
pub fn comparisons(
    setting: &Setting,
    worker: &WorkerCommand,
    comparisons: usize,
    observer: &dyn Observer,
) -> Result<Vec<Measured>, CharacteristicsError> {
    let workshop = Workshop::new(worker.clone(), Timeouts::default(), Limits::default())?;
    let setting = &planned_only(setting);
    let planned = plan(comparisons);
    let mut measured = Vec::new();
    for (index, effect) in planned.iter().enumerate() {
        let name = format!("live comparison {} of {}, {effect}", index + 1, planned.len());
        let observer = Observed { name, observer };
        let failed = |failure| CharacteristicsError::in_live(failure, *effect);
        let injected = if *effect == Effect::NONE {
            None
        } else {
            Injected::measure(setting, worker, *effect)?
        };
        let baseline = slowed("baseline", worker, effect.on_baseline());
        let candidate = slowed("candidate", worker, effect.on_candidate());
        let allowed = Duration::try_from(setting.measurement.budget).unwrap_or_default();
        let comparison =
            measure(&workshop, setting, &baseline, &candidate, allowed, &observer).map_err(failed)?;
        measured.push(Measured {
            effect: *effect,
            injected,
            comparison,
        });
    }
    Ok(measured)
}

/// The effects in order of measurement: spread evenly among the comparisons without effect, so that changes of the
/// machine over time affect all of them alike.
fn plan(comparisons: usize) -> Vec<Effect> {
    let mut planned = Vec::new();
    for index in 0..comparisons {
        for effect in Effect::INJECTED {
            let due = |count: usize| (injected(effect, comparisons) * count).div_ceil(comparisons);
            planned.extend((due(index)..due(index + 1)).map(|_| effect));
        }
    }
    planned
}

/// Counts the decisions of every rule on the comparisons of each effect. The judge keeps only the medians of slots, so
/// the rivals use those as calls.
pub fn cells(comparisons: &[Measured], criteria: &Criteria) -> Vec<Cell> {
    let of = |effect: Effect| -> Vec<Judged> {
        let same = comparisons.iter().filter(|one| one.effect == effect);
        same.map(|one| Judged::new(&trial(&one.comparison), criteria))
            .collect()
    };
    Effect::INJECTED
        .into_iter()
        .map(|effect| (effect, of(effect)))
        .filter(|(_, trials)| !trials.is_empty())
        .map(|(effect, trials)| Cell::new(THIS_MACHINE, effect, &trials, criteria))
        .collect()
}

fn trial(comparison: &Comparison) -> Trial {
    let slots = |arm: fn(&Block) -> &Vec<f64>| -> Vec<f64> {
        let blocks = comparison.cases.iter().flat_map(|case| &case.blocks);
        blocks.flat_map(arm).copied().collect()
    };
    // The judge keeps slots only, so a run is the sum of a process's slots.
    let runs = |arm: fn(&Block) -> &Vec<f64>| -> Vec<f64> {
        let mut runs = BTreeMap::<usize, f64>::new();
        for block in comparison.cases.iter().flat_map(|case| &case.blocks) {
            *runs.entry(block.process).or_default() += arm(block).iter().sum::<f64>();
        }
        runs.into_values().collect()
    };
    Trial {
        decision: decision(comparison),
        planned: None,
        pairs: pairs(comparison),
        seconds: comparison.spent.map_or(0.0, |spent| spent.total()),
        calls: Calls {
            baseline: slots(|block| &block.baseline),
            candidate: slots(|block| &block.candidate),
            runs: [runs(|block| &block.baseline), runs(|block| &block.candidate)],
        },
        seed: comparison.seed,
    }
}

/// The data kept of each comparison.
pub fn records(comparisons: &[Measured]) -> Result<Vec<LiveComparison>, CharacteristicsError> {
    comparisons
        .iter()
        .map(|one| {
            let comparison = &one.comparison;
            let blocks: Vec<Block> = comparison
                .cases
                .iter()
                .flat_map(|case| case.blocks.clone())
                .collect();
            Ok(LiveComparison {
                effect: one.effect,
                injected: one.injected,
                decision: decision(comparison),
                suspicion: suspicion(comparison),
                pairs: pairs(comparison),
                interval: comparison.assessment.suite.clone(),
                process_effects: Sample::from_blocks(&blocks)?.process_effects(),
                seed: comparison.seed,
            })
        })
        .collect()
}

/// The standard deviation of a pair's mean log speed-up around its comparison's mean: the variation between processes
/// on this machine, including residual noise. `None` unless a comparison has two pairs.
pub fn spread(comparisons: &[LiveComparison]) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0);
    for LiveComparison { process_effects, .. } in comparisons {
        let mean = process_effects.iter().sum::<f64>() / process_effects.len() as f64;
        squares += process_effects
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        freedom += process_effects.len().saturating_sub(1);
    }
    (freedom > 0).then(|| (squares / freedom as f64).sqrt())
}

/// The decision of the gate: distrusted times decide nothing.
pub(crate) fn decision(comparison: &Comparison) -> Decision {
    match suspicion(comparison) {
        Some(_) => Decision::Inconclusive,
        None => comparison.assessment.decision,
    }
}

pub(crate) fn suspicion(comparison: &Comparison) -> Option<Suspicion> {
    comparison.conduct.as_ref()?.suspicion
}

fn pairs(comparison: &Comparison) -> usize {
    comparison.looks.last().map_or(0, |look| look.processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effect_gets_its_share_spread_evenly() {
        let planned = plan(8);
        assert_eq!(planned.len(), 8 + 6 * 2);
        for effect in Effect::INJECTED {
            let places: Vec<usize> = (0..planned.len())
                .filter(|place| planned[*place] == effect)
                .collect();
            assert_eq!(places.len(), injected(effect, 8));
            if effect != Effect::NONE {
                assert!(places[0] < 10 && places[1] >= 10, "{effect}: {places:?}");
            }
        }
        assert!(plan(0).is_empty());
    }

    #[test]
    fn the_spread_is_that_within_comparisons() {
        let comparison = |process_effects: &[f64]| LiveComparison {
            effect: Effect::NONE,
            injected: None,
            decision: Decision::Inconclusive,
            suspicion: None,
            pairs: process_effects.len(),
            interval: None,
            process_effects: process_effects.to_vec(),
            seed: 0,
        };
        // The squares sum to 2 and 8, with 1 + 2 degrees of freedom; the distance between the comparisons does not
        // count.
        let spread = spread(&[comparison(&[1.0, 3.0]), comparison(&[98.0, 100.0, 102.0])]).unwrap();
        assert!((spread - (10.0f64 / 3.0).sqrt()).abs() < 1e-12, "{spread}");
        assert_eq!(super::spread(&[comparison(&[1.0])]), None);
    }
}
