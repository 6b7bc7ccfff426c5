//! Counters by Nsight Compute's names, and what is derived from them.
//!
//! The names are those of Nsight Compute 2025.3 on compute capability 9.0; several older ones are tried where they differ.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// 32-byte sectors of global accesses beyond those that the same bytes would need if they lay side by side.
pub const EXCESSIVE_SECTORS: &str = "derived__memory_l2_theoretical_sectors_global_excessive";

/// An amount of bytes with its unit.
pub fn bytes(amount: f64) -> String {
    match amount {
        small if small < 1e3 => format!("{small:.0} B"),
        kilo if kilo < 1e6 => format!("{:.1} kB", kilo / 1e3),
        mega if mega < 1e9 => format!("{:.1} MB", mega / 1e6),
        giga => format!("{:.2} GB", giga / 1e9),
    }
}

/// The counters of a launch.
pub struct Figures<'c>(pub &'c BTreeMap<String, f64>);

impl Figures<'_> {
    /// A counter, where it was read.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied().filter(|value| value.is_finite())
    }

    /// A counter; 0 if it was not read.
    pub fn count(&self, name: &str) -> f64 {
        self.get(name).unwrap_or(0.0)
    }

    /// A percentage as a share.
    pub fn share(&self, name: &str) -> Option<f64> {
        self.get(name).map(|percent| percent / 100.0)
    }

    /// Seconds of the launch.
    pub fn seconds(&self) -> f64 {
        self.count("gpu__time_duration.sum") * 1e-9
    }

    /// The sum of counters that differ in one word, for which `{}` stands.
    pub fn sum(&self, pattern: &str, words: &[&str]) -> f64 {
        words
            .iter()
            .map(|word| self.count(&pattern.replace("{}", word)))
            .sum()
    }

    /// Bytes to and from device memory.
    pub fn moved(&self) -> f64 {
        self.sum("dram__bytes_{}.sum", &["read", "write"])
    }

    /// The launch and what it was compiled to.
    pub fn launched(&self) -> Launched {
        let at_once = |limit: &str| self.get(&format!("launch__occupancy_limit_{limit}"));
        let limits = [
            ("registers", at_once("registers")),
            ("shared memory", at_once("shared_mem")),
            ("warps", at_once("warps")),
            ("blocks", at_once("blocks")),
            ("barriers", at_once("barriers")),
        ];
        let limit = limits
            .into_iter()
            .filter_map(|(name, blocks)| Some((name, blocks?)))
            // The first of several equal limits, as registers and shared memory are what a kernel can change.
            .min_by(|one, other| one.1.total_cmp(&other.1));
        let blocks = self.count("launch__grid_size");
        let multiprocessors = self.count("launch__sm_count");
        // Nsight Compute rounds its own figure to two places, which hides one block beyond a full wave.
        let waves = match limit {
            Some((_, at_once)) if at_once * multiprocessors > 0.0 => blocks / (at_once * multiprocessors),
            _ => self.count("launch__waves_per_multiprocessor"),
        };
        Launched {
            blocks,
            threads: self.count("launch__block_size"),
            multiprocessors,
            waves,
            registers: self.count("launch__registers_per_thread"),
            shared_bytes: self.sum("launch__shared_mem_per_block_{}", &["static", "dynamic"]),
            occupancy: self.share("sm__warps_active.avg.pct_of_peak_sustained_active"),
            possible_occupancy: self.share("sm__maximum_warps_per_active_cycle_pct"),
            limit: limit.map(|(name, _)| name.to_owned()),
            blocks_at_once: limit.map(|(_, blocks)| blocks),
        }
    }
}

/// How a kernel was launched, and what it was compiled to.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Launched {
    /// Blocks of the grid.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: f64,
    /// Multiprocessors of the GPU.
    pub multiprocessors: f64,
    /// How often the grid fills all places for blocks that the GPU has for this kernel.
    pub waves: f64,
    /// Registers of a thread.
    pub registers: f64,
    /// Shared memory of a block in bytes, without the driver's own.
    pub shared_bytes: f64,
    /// Warps that were there, as a share of those that a multiprocessor can hold.
    pub occupancy: Option<f64>,
    /// The same as far as registers, shared memory, and the size of a block allow it.
    pub possible_occupancy: Option<f64>,
    /// What limits the blocks that a multiprocessor can hold at once.
    pub limit: Option<String>,
    /// How many blocks those are.
    pub blocks_at_once: Option<f64>,
}
