//! What a diagnosis says.

use gauntlet_operations::Operation;
use gauntlet_operations::Schedule;
use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::driver::Driver;
use super::experiment::Experiment;
use super::lever::Gain;
use gauntlet_simulate::HostTerm;

/// A measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// What was computed.
    pub problem: Operation,
    /// How long it took.
    pub seconds: f64,
    /// The standard error of the time as a part of it (0.02 is 2 %), where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

/// What times alone say about where they go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Diagnosis {
    /// The schedule that tiles, waves and steps are counted with.
    pub schedule: Schedule,
    /// The device whose processors they are spread over.
    pub device: String,
    /// The times.
    pub measurements: Vec<Measurement>,
    /// How many explanations were looked at.
    pub considered: usize,
    /// Those that the times do not exclude: the fewest that are right with 95 % probability, likeliest first.
    pub explanations: Vec<Explanation>,
    /// All explanations that are kept, averaged by their probability.
    pub average: Average,
    /// Drivers that were left out because their counts are in proportion to another's, each with that one.
    pub indistinct: Vec<Indistinct>,
    /// What to measure next, the most information for the effort first; empty where nothing would tell more.
    pub experiments: Vec<Experiment>,
    /// Whether the best explanation is so far off that the truth is likely none of them.
    pub unexplained: bool,
}

/// A set of drivers whose costs add up to the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Explanation {
    /// How probable it is, of all that were looked at.
    pub probability: f64,
    /// Its drivers with what each costs.
    pub costs: Vec<Cost>,
    /// The root of the mean squared relative error at its best costs.
    pub misfit: f64,
    /// Each measured time in parts, in the order of the measurements.
    pub fits: Vec<Fit>,
    /// What each kind of change could still bring under it.
    pub gains: Vec<Gain>,
}

/// A driver and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The driver.
    pub driver: Driver,
    /// Seconds each time it occurs.
    pub seconds: Credible,
}

/// One time as an explanation has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Seconds at the mean costs; the parts add up to it.
    pub seconds: f64,
    /// What it is made of, in the order of the costs.
    pub parts: Vec<FitPart>,
}

/// A driver's part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitPart {
    /// The driver.
    pub driver: Driver,
    /// Seconds at the mean cost.
    pub seconds: f64,
    /// Its part of the time.
    pub share: Credible,
}

/// What holds whatever the right explanation is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Average {
    /// Each driver's part of the mean time, 0 in explanations without it.
    pub shares: Vec<AverageShare>,
    /// The part of the mean time that is paid once a call and once a group.
    pub host: Credible,
    /// What each kind of change could still bring.
    pub gains: Vec<Gain>,
}

/// A driver over all explanations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AverageShare {
    /// The driver.
    pub driver: Driver,
    /// How probable it is that it plays a part.
    pub probability: f64,
    /// Its part of the mean time.
    pub share: Credible,
    /// Seconds of the mean time.
    pub seconds: Credible,
}

/// A driver that the measured problems cannot tell from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Indistinct {
    /// The one left out.
    pub driver: Driver,
    /// The one that stands for it.
    pub like: Driver,
}

impl Explanation {
    /// Its drivers.
    pub fn drivers(&self) -> impl Iterator<Item = Driver> {
        self.costs.iter().map(|cost| cost.driver)
    }

    /// What a call costs outside the kernel if this is right.
    pub fn host_term(&self) -> HostTerm {
        let cost = |driver| {
            let found = self.costs.iter().find(|cost| cost.driver == driver);
            found.map_or(0.0, |cost| cost.seconds.mean)
        };
        HostTerm {
            constant: cost(Driver::Constant),
            per_group: cost(Driver::Groups),
        }
    }
}

impl Diagnosis {
    /// What a call costs outside the kernel by the likeliest explanation. Averaged over rivals, the costs would be a
    /// mixture that none of them stands for.
    pub fn host_term(&self) -> HostTerm {
        self.explanations
            .first()
            .map(Explanation::host_term)
            .unwrap_or_default()
    }
}
