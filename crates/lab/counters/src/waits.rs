//! What warps wait for.

use schemars::JsonSchema;
use serde::Serialize;

use crate::figures::Figures;

/// A reason to wait.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Wait {
    /// Nsight Compute's name of it, such as `long-scoreboard`.
    pub name: String,
    /// What it is, in words.
    pub reason: String,
    /// The share of the time that warps spend with it.
    pub share: f64,
}

/// Prefix and suffix of the counters: cycles of that state for each instruction that is issued.
const STALL: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");

/// The states of a warp by Nsight Compute's names, after the documentation of its metrics.
const REASONS: [(&str, &str); 18] = [
    ("long_scoreboard", "data from global or local memory"),
    (
        "short_scoreboard",
        "data from shared memory or the units for exponentials",
    ),
    ("barrier", "other warps at a barrier"),
    (
        "mio_throttle",
        "room in the queue of shared memory and special instructions",
    ),
    ("lg_throttle", "room in the queue of global and local memory"),
    ("math_pipe_throttle", "an arithmetic unit that is busy"),
    ("gmma", "the matrix unit of its warp group"),
    ("wait", "the fixed latency of the instruction before"),
    ("not_selected", "its turn, as other warps could issue too"),
    ("selected", "nothing: it issues"),
    ("drain", "its stores at the end"),
    ("no_instruction", "instructions"),
    ("branch_resolving", "the target of a branch"),
    ("imc_miss", "constants"),
    ("membar", "a memory barrier"),
    ("dispatch_stall", "the dispatcher"),
    ("sleeping", "its own sleep"),
    ("tex_throttle", "room in the queue of textures"),
];

/// States with less than this share are left out.
const LEAST: f64 = 0.03;

/// What the time of warps goes to, the largest share first.
pub fn waits(figures: &Figures) -> Vec<Wait> {
    let states: Vec<(&str, f64)> = figures
        .0
        .keys()
        .filter_map(|name| {
            let state = name.strip_prefix(STALL.0)?.strip_suffix(STALL.1)?;
            Some((state, figures.get(name)?))
        })
        .collect();
    let all: f64 = states.iter().map(|(_, cycles)| cycles).sum();
    let mut waits: Vec<Wait> = states
        .into_iter()
        .filter(|(state, cycles)| cycles / all >= LEAST && *state != "selected")
        .map(|(state, cycles)| Wait {
            name: state.replace('_', "-"),
            reason: REASONS
                .iter()
                .find(|(name, _)| *name == state)
                .map_or_else(|| state.replace('_', " "), |(_, reason)| (*reason).to_owned()),
            share: cycles / all,
        })
        .collect();
    waits.sort_by(|one, other| other.share.total_cmp(&one.share));
    waits
}

/// The share of the time that warps spend in any of these states.
pub fn share_of(waits: &[Wait], names: &[&str]) -> f64 {
    waits
        .iter()
        .filter(|wait| names.contains(&wait.name.as_str()))
        .map(|wait| wait.share)
        .sum()
}
