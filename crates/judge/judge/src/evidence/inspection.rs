//! Reports of NVIDIA's tools about the kernels that ran on a GPU.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One tool's report on one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// The tool.
    pub tool: String,
    /// The case.
    pub case: String,
    /// Its report.
    pub told: Told,
}

/// A tool's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// It ran and found nothing.
    Clean,
    /// Findings that may be intended: their number, and the first one.
    Warnings {
        /// How many.
        count: usize,
        /// The first, with the kernel and the place in it.
        first: String,
    },
    /// Faults.
    Faults {
        /// How many.
        count: usize,
        /// The first, with the kernel and the place in it.
        first: String,
    },
    /// It could not run, with the reason.
    Nothing(String),
}

/// The counters of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// The case.
    pub case: String,
    /// The kernel that took the most time.
    pub kernel: String,
    /// Utilisation shares for `tensor-pipe`, `issue-slots`, `l2-throughput`, `dram-throughput` and `occupancy`; counts
    /// for `bank-conflicts` and `registers` (per thread).
    pub figures: BTreeMap<String, f64>,
    /// The three main reasons why warps stalled, the longest first, in cycles per issued instruction.
    pub stalls: Vec<(String, f64)>,
}

/// Why there are no counters, in words.
pub type Unreadable = String;
