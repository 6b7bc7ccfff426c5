//! Model predictions in place of measurements: simulated times, whose spread is the model's own error, and profiles.
//! Nothing runs, so the device need not be present; every verdict from such times is marked *predicted*.

mod bar;
mod comparison;
mod profile;
mod speedup;

use std::collections::BTreeMap;

use gauntlet_judge::{Candidate, Comparison, HostCost, JudgeError, Model, Profile, Setting};
use gauntlet_simulate::HostTerm;

pub use comparison::compare_predicted;
use profile::profiles;
pub use speedup::predict;

/// The lab's model of devices and kernels.
pub struct Predictions;

impl Model for Predictions {
    fn compare(
        &self,
        setting: &Setting,
        baseline: &Candidate,
        candidate: &Candidate,
    ) -> Result<Result<Comparison, String>, JudgeError> {
        compare_predicted(setting, baseline, candidate)
    }

    fn profiles(
        &self,
        setting: &Setting,
        candidate: &Candidate,
    ) -> Result<BTreeMap<String, Profile>, String> {
        profiles(setting, candidate).map_err(|missing| missing.to_string())
    }
}

/// The cost of a call on the host as the model takes it; zero if none is stated.
pub fn host_term(cost: Option<&HostCost>) -> HostTerm {
    cost.map_or_else(HostTerm::default, |cost| HostTerm {
        constant: cost.constant.as_secs_f64(),
        per_group: cost.per_group.as_secs_f64(),
    })
}
