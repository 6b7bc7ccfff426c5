//! The conditions of an examination: on which device, on which cases, by which rules.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_parameters::Table;
use gauntlet_stats::{Criteria, look_after};
use gauntlet_task::{Case, Rules, Suite};
use gauntlet_worker::protocol::Scope;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{Regime, Trust};

/// Everything that a candidate and its baseline share during an examination.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The device that candidates run on, or that the model simulates.
    pub device: Device,
    /// Cases that are only tested for correctness.
    pub correctness_cases: Vec<Case>,
    /// Cases that are timed.
    pub benchmark_cases: Vec<Case>,
    /// The parameters that the kernels of the cases accept.
    pub parameters: Table,
    /// The rules for a right result.
    pub rules: Rules,
    /// The statistical rules of the verdict.
    pub criteria: Criteria,
    /// How candidates are measured.
    pub measurement: Measurement,
    /// Upper bounds on resources, by name.
    pub budgets: BTreeMap<String, f64>,
}

impl Setting {
    /// The cases of a suite on a device, with the usual rules for a right result and no budgets.
    pub fn new(device: Device, suite: &Suite, measurement: Measurement, criteria: Criteria) -> Self {
        Self {
            device,
            correctness_cases: suite.correctness.clone(),
            benchmark_cases: suite.benchmark.clone(),
            parameters: suite.parameters(),
            rules: Rules::default(),
            criteria: Criteria {
                looks: measurement.looks.len(),
                open_ended: measurement.open_ended,
                ..criteria
            },
            measurement,
            budgets: BTreeMap::new(),
        }
    }
}

/// How candidates are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Measurement {
    /// Numbers of pairs of worker processes after which the figures are evaluated.
    pub looks: Vec<usize>,
    /// Whether a comparison that is undecided at the last of these numbers goes on while there is time, and is evaluated
    /// at further ones ([`gauntlet_stats::look_after`]).
    pub open_ended: bool,
    /// ABBA or BAAB blocks for each problem and pair of processes.
    pub blocks: usize,
    /// Time for all comparisons together.
    pub budget: SignedDuration,
    /// Whether operands may stay in the caches between calls; otherwise calls rotate over operands of twice the
    /// last-level cache's size.
    pub warm: bool,
    /// In which state of the device calls are timed.
    pub regime: Regime,
    /// From where to where calls on a GPU are clocked. `device` where the hosts of both sides can; whole calls elsewhere,
    /// so that both sides are clocked alike.
    pub scope: Scope,
    /// The least load before each slot in the sustained regime; up to half as much more is drawn at random. A GPU's
    /// power limit changes its clock within tens of milliseconds, so half a second is enough for the clock to settle.
    pub heating: SignedDuration,
    /// Whether what a GPU does in calls is traced after the last pair, in a process more of each side.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub activity: bool,
    /// Whether the kernels are watched for cheats.
    #[serde(skip_serializing_if = "Trust::is_watched")]
    pub trust: Trust,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            // Four pairs decide where the gain is many times the spread, at little cost in error where it is not; with fewer
            // the checks of conduct have little power. The last planned look is late because only more processes average out
            // the random part of each process's speed.
            looks: vec![4, 6, 9, 12],
            open_ended: true,
            blocks: 3,
            budget: SignedDuration::from_secs(120),
            warm: false,
            regime: Regime::Isolated,
            scope: Scope::Device,
            heating: SignedDuration::from_millis(500),
            activity: false,
            trust: Trust::Watched,
        }
    }
}

impl Measurement {
    /// As usual for kernels that are not watched: their requests cost little, so blocks are short and many. On a shared two-core
    /// machine, whose speed changed every 0.1 s or so, the effects of pairs scattered by 2.4 % with three blocks of slots of 36 ms,
    /// and by 1.5 % with fifteen of 7 ms, in the same time.
    pub fn quick() -> Self {
        Self {
            // Three pairs are the fewest that decide, and there is no conduct to check.
            looks: vec![3, 4, 6, 9, 12],
            blocks: 6,
            trust: Trust::Quick,
            ..Self::default()
        }
    }

    /// The number of pairs at which a comparison with `pairs` pairs is evaluated next; `pairs` if it has no look left.
    pub fn next_look(&self, pairs: usize) -> usize {
        let next = look_after(&self.looks, pairs);
        if self.ends_at(pairs) { pairs } else { next }
    }

    /// The least seconds of load before each slot; none where calls are isolated.
    pub fn load(&self) -> Option<f64> {
        (self.regime == Regime::Sustained).then(|| self.heating.as_secs_f64())
    }

    /// Whether a comparison with `pairs` pairs has no look left, however much time there is.
    pub fn ends_at(&self, pairs: usize) -> bool {
        let last = self.looks.last().copied().unwrap_or_default();
        !self.open_ended && pairs >= last
    }
}

/// The executor of candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExecutorKind {
    /// This machine's CPU.
    Cpu,
    /// An NVIDIA GPU of this machine.
    Cuda,
    /// Recorded times are replayed.
    Replay,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_ended_measurement_goes_on_and_another_stops_at_its_last_look() {
        let looks = |plan: &Measurement| {
            let mut looks = vec![0];
            while looks.len() < 7 && !plan.ends_at(looks[looks.len() - 1]) {
                looks.push(plan.next_look(looks[looks.len() - 1]));
            }
            looks
        };
        let open_ended = Measurement::default();
        assert_eq!(looks(&open_ended), [0, 4, 6, 9, 12, 18, 27]);
        let planned = Measurement {
            open_ended: false,
            ..Measurement::default()
        };
        assert_eq!(looks(&planned), [0, 4, 6, 9, 12]);
        assert_eq!(planned.next_look(12), 12);
    }

    #[test]
    fn the_criteria_spend_their_error_as_the_measurement_goes_on() {
        let suite = gauntlet_families::suite("group-gemm").unwrap();
        for open_ended in [false, true] {
            let measurement = Measurement {
                open_ended,
                ..Measurement::default()
            };
            let device = Device::builtin("h200").unwrap();
            let criteria = Setting::new(device, &suite, measurement, Criteria::default()).criteria;
            assert_eq!((criteria.looks, criteria.open_ended), (4, open_ended));
            assert_eq!(criteria.look_plan().unwrap().confidence_at(5).is_ok(), open_ended);
        }
    }
}
