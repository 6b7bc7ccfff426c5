//! What NVIDIA's tools said about what ran on a GPU.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one tool said of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// The tool.
    pub tool: String,
    /// The case.
    pub case: String,
    /// What it said.
    pub told: Told,
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// It looked and found nothing.
    Clean,
    /// Things that may be intended; `count` of them, and the first.
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
    /// It could not look; why.
    Nothing(String),
}

/// What the counters of one kernel say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// The case.
    pub case: String,
    /// The kernel that took the most time.
    pub kernel: String,
    /// Shares of what the unit could do for `tensor-pipe`, `issue-slots`, `l2-throughput`, `dram-throughput` and
    /// `occupancy`; counts for `bank-conflicts` and `registers` (a thread).
    pub figures: BTreeMap<String, f64>,
    /// Why warps waited, the longest first, in cycles an instruction issued; the three longest.
    pub stalls: Vec<(String, f64)>,
}

/// Why there are no counters, in words.
pub type Unreadable = String;
