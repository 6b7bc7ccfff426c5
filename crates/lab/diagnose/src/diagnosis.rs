//! The result of a diagnosis.

use gauntlet_problems::Operation;
use gauntlet_problems::Schedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::driver::Driver;
use super::experiment::Experiment;
use super::lever::Gain;
use gauntlet_simulate::HostTerm;

/// A measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The problem that was computed.
    pub problem: Operation,
    /// The time of a call.
    pub seconds: f64,
    /// The relative standard error of the time (0.02 is 2 %), if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
}

/// The conclusions that times alone allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Diagnosis {
    /// The schedule used to count tiles, waves and steps.
    pub schedule: Schedule,
    /// The device whose number of processors is used.
    pub device: String,
    /// The measured times.
    pub measurements: Vec<Measurement>,
    /// The number of explanations considered.
    pub considered: usize,
    /// The explanations that the times do not exclude: the smallest set that contains the right one with 95 %
    /// probability, likeliest first.
    pub explanations: Vec<Explanation>,
    /// All kept explanations, averaged by their probability.
    pub average: Average,
    /// Drivers that were left out because their counts are proportional to another's, each with that other driver.
    pub indistinct: Vec<Indistinct>,
    /// The next measurements, sorted by information per effort; empty if no measurement would add information.
    pub experiments: Vec<Experiment>,
    /// Whether even the best explanation is so far off that probably none of them is right.
    pub unexplained: bool,
}

/// A set of drivers with costs that add up to the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Explanation {
    /// Its probability among all explanations considered.
    pub probability: f64,
    /// Its drivers and their costs.
    pub costs: Vec<Cost>,
    /// The root of the mean squared relative error at its best costs.
    pub misfit: f64,
    /// Each measured time divided into parts, in the order of the measurements.
    pub fits: Vec<Fit>,
    /// The possible gain of each kind of change under this explanation.
    pub gains: Vec<Gain>,
}

/// A driver and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The driver.
    pub driver: Driver,
    /// Seconds per occurrence.
    pub seconds: Credible,
}

/// One measured time, as an explanation models it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Seconds at the mean costs; the parts add up to it.
    pub seconds: f64,
    /// The parts, in the order of the costs.
    pub parts: Vec<FitPart>,
}

/// A driver's part of a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FitPart {
    /// The driver.
    pub driver: Driver,
    /// Seconds at the mean cost.
    pub seconds: f64,
    /// Its share of the time.
    pub share: Credible,
}

/// Results averaged over explanations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Average {
    /// Each driver's share of the mean time, 0 in explanations without it.
    pub shares: Vec<AverageShare>,
    /// The share of the mean time that is paid once per call and once per group.
    pub host: Credible,
    /// The possible gain of each kind of change.
    pub gains: Vec<Gain>,
}

/// A driver over all explanations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AverageShare {
    /// The driver.
    pub driver: Driver,
    /// The probability that it contributes.
    pub probability: f64,
    /// Its share of the mean time.
    pub share: Credible,
    /// Seconds of the mean time.
    pub seconds: Credible,
}

/// A driver that the measured problems cannot distinguish from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Indistinct {
    /// The driver that was left out.
    pub driver: Driver,
    /// The driver that represents it.
    pub like: Driver,
}

impl Explanation {
    /// Its drivers.
    pub fn drivers(&self) -> impl Iterator<Item = Driver> {
        self.costs.iter().map(|cost| cost.driver)
    }

    /// The cost of a call outside the kernel if this explanation is right.
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
    /// The cost of a call outside the kernel under the likeliest explanation. An average over explanations would be a
    /// mixture that none of them predicts.
    pub fn host_term(&self) -> HostTerm {
        self.explanations
            .first()
            .map(Explanation::host_term)
            .unwrap_or_default()
    }
}
