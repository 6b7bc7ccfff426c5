//! How often do verdicts err? Comparisons with known truth, synthetic and real, beside what other rules would say.
//!
//! The way of the data: [`noise`] makes machines, [`trial`] compares on them as the lab does and [`live`] has the lab
//! compare real workers; [`rule`] is what others would have said to the same calls; [`cell`] and [`tally`] count, with
//! the interval of each [`share`]; [`goals`] holds the counts against what is promised.

pub mod cell;
pub mod effect;
pub mod error;
pub mod goals;
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
use serde::{Deserialize, Serialize};

use cell::Cell;
use effect::Effect;
use error::CharacteristicsError;
use goals::{Goal, Standing};
use live::LiveComparison;

/// How much is to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Extent {
    /// Synthetic comparisons of a thing with itself in each kind of noise; a quarter as many with each effect.
    pub synthetic: usize,
    /// The same of real workers on this machine.
    pub live: usize,
    /// The seed of the synthetic ones.
    pub seed: u64,
}

/// What was found, with all that it depends on but the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Characteristics {
    /// How much was compared.
    pub extent: Extent,
    /// By which criteria.
    pub criteria: Criteria,
    /// By which plan; the budget is never used up.
    pub measurement: Measurement,
    /// The parameters of the synthetic machines, by name.
    pub parameters: BTreeMap<String, Vec<f64>>,
    /// Synthetic comparisons.
    pub synthetic: Vec<Cell>,
    /// Real ones.
    pub live: Vec<Cell>,
    /// Each real one.
    pub live_comparisons: Vec<LiveComparison>,
    /// The standard deviation of the log speed-ups of pairs of real processes around those of their comparisons.
    pub live_spread: Option<f64>,
    /// The goals.
    pub goals: Vec<Goal>,
}

impl Characteristics {
    /// Compares all that `extent` says, with the default criteria and plan. `worker` serves the CPU of `device`.
    pub fn measure(
        extent: Extent,
        device: Device,
        worker: &WorkerCommand,
        observer: &dyn Observer,
    ) -> Result<Self, CharacteristicsError> {
        let setting = live::setting(device)?;
        let (criteria, measurement) = (setting.criteria.clone(), setting.measurement.clone());
        let synthetic = synthetic::cells(&criteria, &measurement, extent.synthetic, extent.seed, observer)?;
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

/// How many comparisons an effect gets where the comparisons without one are `same`: false verdicts are rare and need
/// many, a power near one few.
fn injected(effect: Effect, same: usize) -> usize {
    if effect == Effect::NONE { same } else { same / 4 }
}

/// Says of what it is that something progresses.
struct Observed<'a> {
    name: String,
    observer: &'a dyn Observer,
}

impl Observer for Observed<'_> {
    fn progress(&self, message: &str) {
        self.observer.progress(&format!("{}: {message}", self.name));
    }
}
