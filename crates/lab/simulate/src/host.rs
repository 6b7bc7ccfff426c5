//! The cost of a call outside the kernel.

use crate::Problem;
use gauntlet_problems::{Schedule, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time on the host in every call, before the kernel can start: making tensors, descriptors and tables. It depends on
/// the framework, not the device, so it comes with the problem or from a diagnosis. With set-up done once
/// ([`Setup::Once`](gauntlet_problems::Setup)) only the launch remains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HostTerm {
    /// Seconds per call.
    pub constant: f64,
    /// Seconds per group of a GEMM, or sequence of attention.
    pub per_group: f64,
}

impl HostTerm {
    /// Seconds of one call; 0 if everything is set up once.
    pub fn seconds(self, problem: &Problem, schedule: &Schedule) -> f64 {
        let groups = problem.model().groups();
        match schedule.setup {
            Setup::PerCall => self.constant + self.per_group * groups as f64,
            Setup::Once => 0.0,
        }
    }
}
