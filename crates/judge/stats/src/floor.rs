//! The floor under each problem: a good mean must not hide one bad case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Criteria, Effect, Interval, holm_adjusted};

/// How a problem compares with the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FloorFinding {
    /// The whole interval is at or over the floor.
    Held,
    /// The interval reaches under the floor, but the evidence does not show that the speed-up is under it.
    PossiblyBroken,
    /// The evidence says that the speed-up is under the floor.
    Broken,
    /// There is no interval to decide by.
    Unknown,
}

/// Examines measured problems together. Broken when Holm's adjusted p-value of "under the floor" is at most
/// (1 − confidence)/2: the one-sided level of either end of the interval, for the whole family of problems.
/// Returns each problem's adjusted p-value and finding; `effects` and `intervals` have the same order.
pub(crate) fn examine_measured(
    effects: &[Effect],
    intervals: &[Interval],
    criteria: &Criteria,
    confidence: f64,
) -> Vec<(f64, FloorFinding)> {
    let floor = criteria.log_floor();
    let p_values: Vec<f64> = effects
        .iter()
        .map(|problem| problem.p_value_below(floor))
        .collect();
    let finding = |p_value: f64, interval: &Interval| {
        if p_value <= (1.0 - confidence) / 2.0 {
            FloorFinding::Broken
        } else if interval.lower < floor {
            FloorFinding::PossiblyBroken
        } else {
            FloorFinding::Held
        }
    };
    holm_adjusted(&p_values)
        .into_iter()
        .zip(intervals)
        .map(|(p, interval)| (p, finding(p, interval)))
        .collect()
}

/// Examines one problem by declared or predicted bounds: broken when even the upper bound is under the floor. Neither
/// worst cases nor the model's error need a correction for the number of problems: no chance is drawn again for each.
pub(crate) fn examine_bounds(interval: &Interval, criteria: &Criteria) -> FloorFinding {
    let floor = criteria.log_floor();
    if interval.upper < floor {
        FloorFinding::Broken
    } else if interval.lower < floor {
        FloorFinding::PossiblyBroken
    } else {
        FloorFinding::Held
    }
}
