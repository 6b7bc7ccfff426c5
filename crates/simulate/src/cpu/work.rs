//! A problem under a schedule as the driver of the CPU executor meets it: pieces to load, tiles of steps, results to
//! reduce, each with its time.

use super::rates::Rates;

/// Everything that one call has to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    /// Planning, and buffers made and freed.
    pub(super) setup: f64,
    /// Seconds of each piece of the operand that stays for all tiles.
    pub(super) resident: Vec<f64>,
    /// Tiles that cost the same.
    pub(super) classes: Vec<TileTimes>,
    /// The class of each tile.
    pub(super) tiles: Vec<usize>,
    /// Seconds of each result that is reduced from parts.
    pub(super) reductions: Vec<f64>,
    /// The useful products of all tiles at the rate of a full register block, in thread-seconds.
    pub(super) useful: f64,
}

/// What one tile takes, in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct TileTimes {
    /// Finding it.
    pub(super) find: f64,
    /// Loading what all its steps need.
    pub(super) begin: f64,
    /// Its steps.
    pub(super) steps: Vec<StepTimes>,
    /// Writing its result, or its part of it.
    pub(super) finish: f64,
    /// By what it is sorted.
    pub(super) cost: u64,
}

/// What one step takes, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepTimes {
    /// Dequantising its panels.
    pub(super) prepare: f64,
    /// Multiplying them.
    pub(super) multiply: f64,
}

/// The buffers that a call makes if nothing is kept, as lists of equals: how many, and bytes of each.
pub(super) fn buffers(rates: &Rates, sizes: &[(usize, f64)]) -> f64 {
    sizes
        .iter()
        .map(|(count, bytes)| *count as f64 * bytes * rates.buffer.at(*bytes))
        .sum()
}

/// The part of `total` that slice `slice` of `slices` gets, as the executor cuts.
pub(super) fn share(total: usize, slice: usize, slices: usize) -> std::ops::Range<usize> {
    let cut = |slice: usize| (total as u128 * slice as u128 / slices as u128) as usize;
    cut(slice)..cut(slice + 1)
}
