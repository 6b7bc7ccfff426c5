//! What a call costs outside the kernel.

use serde::{Deserialize, Serialize};

/// Time on the host in every call, before the kernel can start: tensors, descriptors and tables made anew. It is the
/// framework's, not the device's, so that it comes with the problem or from a diagnosis. With set-up made once
/// ([`Setup::Once`](gauntlet_schedule::Setup)) none of it is left but the launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HostTerm {
    /// Seconds a call.
    pub constant: f64,
    /// Seconds a group of a GEMM, or a sequence of attention.
    pub per_group: f64,
}

impl HostTerm {
    /// Seconds for a call over so many groups.
    pub fn seconds(self, groups: usize) -> f64 {
        self.constant + self.per_group * groups as f64
    }
}
