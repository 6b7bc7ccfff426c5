//! The highest rates of a GPU's parts, and how well they are used.

use schemars::JsonSchema;
use serde::Serialize;

use crate::figures::{Figures, bytes};

/// The least time of a call by one roof.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Roof {
    /// The roof, and what is held against it.
    pub name: String,
    /// The least time in seconds.
    pub seconds: f64,
}

/// How well a part of the GPU is used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Used {
    /// The part.
    pub part: String,
    /// The share of its highest rate, over the time of the launch.
    pub share: f64,
}

/// A part that limits others is told before them when they are about as well used: what goes to device memory passes through the
/// level-2 cache too.
const ABOUT: f64 = 0.85;

const DRAM: &str = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";

/// A part of a GPU and its counters, of which the first that was read is used.
type Part = (&'static str, &'static [&'static str]);

const PARTS: [Part; 8] = [
    (
        "device memory",
        &[DRAM, "dram__throughput.avg.pct_of_peak_sustained_elapsed"],
    ),
    (
        "the level-2 cache",
        &["lts__throughput.avg.pct_of_peak_sustained_elapsed"],
    ),
    (
        "shared memory and the level-1 cache",
        &["l1tex__throughput.avg.pct_of_peak_sustained_elapsed"],
    ),
    (
        "the matrix units",
        &[
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        ],
    ),
    (
        "the units for floating-point sums and products",
        &["sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"],
    ),
    (
        "the units for whole numbers and comparisons",
        &["sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active"],
    ),
    (
        "the units for exponentials and conversions",
        &["sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"],
    ),
    (
        "the units for double precision",
        &["sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"],
    ),
];

/// The part that limits the others: the best used one, or device memory if that is about as well used.
pub fn limiting(used: &[Used]) -> Option<&Used> {
    let best = used.first()?;
    let memory = used
        .iter()
        .find(|one| one.part == PARTS[0].0 && one.share >= ABOUT * best.share);
    memory.or(Some(best))
}

/// How well the parts of the GPU are used, the best used first.
pub fn used(figures: &Figures) -> Vec<Used> {
    let busy = busy(figures);
    let mut used: Vec<Used> = PARTS
        .iter()
        .filter_map(|(part, names)| {
            let (name, share) = names.iter().find_map(|name| Some((name, figures.share(name)?)))?;
            // A multiprocessor's rate is told for the time in which it had work.
            let over_the_launch = if name.ends_with("_active") {
                share * busy
            } else {
                share
            };
            Some(Used {
                part: (*part).to_owned(),
                share: over_the_launch,
            })
        })
        .collect();
    used.sort_by(|one, other| other.share.total_cmp(&one.share));
    used
}

/// The share of the launch in which a multiprocessor has work, on the average.
fn busy(figures: &Figures) -> f64 {
    let rate = |ending| figures.get(&format!("l1tex__throughput.avg.pct_of_peak_sustained_{ending}"));
    match (rate("elapsed"), rate("active")) {
        (Some(elapsed), Some(active)) if active > 0.0 => (elapsed / active).min(1.0),
        _ => 1.0,
    }
}

/// The least time of a call by the rates that the counters imply.
pub fn roofs(figures: &Figures, least_bytes: u64) -> Vec<Roof> {
    let seconds = figures.seconds();
    let mut roofs = Vec::new();
    let peak = figures
        .share(DRAM)
        .filter(|share| *share > 0.0)
        .map(|share| figures.moved() / seconds / share);
    if let (Some(peak), true) = (peak, least_bytes > 0 && seconds > 0.0) {
        roofs.push(Roof {
            name: format!(
                "device memory: {} at {:.2} TB/s",
                bytes(least_bytes as f64),
                peak / 1e12
            ),
            seconds: least_bytes as f64 / peak,
        });
    }
    roofs
}
