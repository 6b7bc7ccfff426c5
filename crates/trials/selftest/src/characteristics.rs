//! How often are verdicts wrong? Comparisons with known truth, synthetic and real, with the decisions of other rules
//! for reference.
//!
//! The data flow: [`noise`] simulates machines; [`trial`] runs comparisons on them as the lab does, and [`live`] lets
//! the lab compare real workers; [`rule`] gives the decisions of other rules on the same calls, and [`estimator`] the
//! lab's with another figure for a slot; [`cell`] and [`tally`]
//! count, with the interval of each [`share`]; [`goals`] checks the counts against the lab's promises.

pub mod cell;
pub mod effect;
pub mod error;
pub mod estimator;
pub mod goals;
pub mod injected;
pub mod live;
pub mod noise;
pub mod rule;
pub mod share;
pub mod slowed;
mod synthetic;
pub mod tally;
pub mod trial;

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_judge::{Measurement, Observer};
use gauntlet_stats::Criteria;
use gauntlet_worker::WorkerCommand;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use cell::Cell;
use effect::Effect;
use error::CharacteristicsError;
use estimator::EstimatorCell;
use goals::{Goal, Standing};
use live::LiveComparison;

/// How many comparisons to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Extent {
    /// Synthetic comparisons of a thing with itself in each kind of noise; each effect gets a quarter as many.
    pub synthetic: usize,
    /// The same for real workers on this machine.
    pub live: usize,
    /// The seed of the synthetic comparisons.
    pub seed: u64,
}

/// The results, with everything that they depend on except the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Characteristics {
    /// The number of comparisons.
    pub extent: Extent,
    /// The decision criteria.
    pub criteria: Criteria,
    /// The measurement plan. The budget is that of each comparison, in simulated time on synthetic machines.
    pub measurement: Measurement,
    /// The parameters of the synthetic machines, by name.
    pub parameters: BTreeMap<String, Vec<f64>>,
    /// Synthetic comparisons.
    pub synthetic: Vec<Cell>,
    /// What stands for a slot: the lab's choice and others, on synthetic machines.
    pub estimators: Vec<EstimatorCell>,
    /// Real comparisons, counted.
    pub live: Vec<Cell>,
    /// Each real comparison.
    pub live_comparisons: Vec<LiveComparison>,
    /// The standard deviation, across pairs of real processes, of a pair's log speed-up around its comparison's.
    pub live_spread: Option<f64>,
    /// The goals.
    pub goals: Vec<Goal>,
}

impl Characteristics {
    /// Runs the comparisons of `extent` with the default criteria and plan. `worker` serves the CPU of `device`.
    pub fn measure(
        extent: Extent,
        device: Device,
        worker: &WorkerCommand,
        observer: &dyn Observer,
    ) -> Result<Self, CharacteristicsError> {
        let setting = live::setting(device)?;
        let (criteria, measurement) = (setting.criteria.clone(), setting.measurement.clone());
        let synthetic = synthetic::cells(&criteria, &measurement, extent.synthetic, extent.seed, observer)?;
        let alternatives = extent.synthetic / ALTERNATIVES;
        let estimators = estimator::cells(&criteria, &measurement, alternatives, extent.seed, observer)?;
        let comparisons = live::comparisons(&setting, worker, extent.live, observer)?;
        let live = live::cells(&comparisons, &criteria);
        let mut goals = goals::of_synthetic(&synthetic);
        goals.extend(goals::of_live(&live));
        let live_comparisons = live::records(&comparisons)?;
        Ok(Self {
            extent,
            criteria,
            measurement,
            parameters: noise::parameters(),
            synthetic,
            estimators,
            live,
            live_spread: live::spread(&live_comparisons),
            live_comparisons,
            goals,
        })
    }

    /// Whether no goal is missed.
    pub fn is_as_promised(&self) -> bool {
        self.goals.iter().all(|goal| goal.standing != Standing::Missed)
    }
}

/// The number of comparisons for an effect when A/A comparisons get `same`: false verdicts are rare and need many
/// comparisons, a power near one needs few.
fn injected(effect: Effect, same: usize) -> usize {
    if effect == Effect::NONE { same } else { same / 4 }
}

/// The share of synthetic comparisons that is made once more with each estimator: one in ten.
const ALTERNATIVES: usize = 10;

/// Prefixes progress messages with a name.
struct Observed<'a> {
    name: String,
    observer: &'a dyn Observer,
}

impl Observer for Observed<'_> {
    fn progress(&self, message: &str) {
        self.observer.progress(&format!("{}: {message}", self.name));
    }
}
