//! The cost of a call outside the kernel.

use gauntlet_operations::Operation;
use gauntlet_operations::{Schedule, Setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time on the host in every call, before the kernel can start: making tensors, descriptors and tables. It depends on
/// the framework, not the device, so it comes with the problem or from a diagnosis. With set-up done once
/// ([`Setup::Once`](gauntlet_operations::Setup)) only the launch remains.
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
    pub fn seconds(self, problem: &Operation, schedule: &Schedule) -> f64 {
        let groups = match problem {
            Operation::GroupedGemm(gemm) => gemm.groups.len(),
            Operation::Attention(attention) => attention.sequences.len(),
        };
        match schedule.setup {
            Setup::PerCall => self.constant + self.per_group * groups as f64,
            Setup::Once => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gauntlet_operations::{GemmShape, GroupedGemm};

    #[test]
    fn what_is_set_up_once_costs_no_call() {
        let problem = Operation::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: 1, n: 16, k: 16 }; 8],
            form: Default::default(),
            output: Default::default(),
            tokens: Default::default(),
        });
        let host = HostTerm {
            constant: 95e-6,
            per_group: 35e-6,
        };
        let mut schedule = Schedule::baseline();
        assert!((host.seconds(&problem, &schedule) - 375e-6).abs() < 1e-12);
        schedule.setup = Setup::Once;
        assert_eq!(host.seconds(&problem, &schedule), 0.0);
    }
}
