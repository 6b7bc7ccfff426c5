//! Instruction sets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The instruction set that schedules are checked against and code is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Arch {
    /// A CPU; its vector extensions are figures of the device.
    #[serde(rename = "cpu")]
    Cpu,
    /// NVIDIA Ampere (A100): `mma.sync`, asynchronous copies.
    #[serde(rename = "sm_80")]
    Sm80,
    /// NVIDIA Ada (L4): as Ampere, with e4m3 products.
    #[serde(rename = "sm_89")]
    Sm89,
    /// NVIDIA Hopper (H100, H200): `wgmma`, bulk copies, clusters.
    #[serde(rename = "sm_90a")]
    Sm90a,
    /// NVIDIA Blackwell (B200): `tcgen05`, tensor memory, FP4 products.
    #[serde(rename = "sm_100a")]
    Sm100a,
}

impl fmt::Display for Arch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Cpu => "cpu",
            Self::Sm80 => "sm_80",
            Self::Sm89 => "sm_89",
            Self::Sm90a => "sm_90a",
            Self::Sm100a => "sm_100a",
        })
    }
}
