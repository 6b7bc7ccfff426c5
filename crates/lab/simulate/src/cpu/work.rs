//! A problem under a schedule, as the CPU executor's driver sees it: pieces to load, tiles of steps, results to reduce,
//! each with its time.

use super::rates::Rates;

/// All work of one call.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Planning, and buffers made and freed.
    pub setup: f64,
    /// Seconds of each piece of the resident operand.
    pub resident: Vec<f64>,
    /// Tiles that cost the same.
    pub classes: Vec<TileTimes>,
    /// The class of each tile.
    pub tiles: Vec<usize>,
    /// Seconds of each result that is reduced from parts.
    pub reductions: Vec<f64>,
    /// The useful products of all tiles at the rate of a full register block, in thread-seconds.
    pub useful: f64,
}

/// The times of one tile, in seconds.
#[derive(Debug, Clone, Default)]
pub struct TileTimes {
    /// Finding it.
    pub find: f64,
    /// Loading the data that all its steps need.
    pub begin: f64,
    /// Its steps.
    pub steps: Vec<StepTimes>,
    /// Writing its result, or a partial result.
    pub finish: f64,
    /// The sort key.
    pub cost: u64,
}

/// The times of one step, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepTimes {
    /// Dequantising its panels.
    pub prepare: f64,
    /// Multiplying them.
    pub multiply: f64,
}

/// The time of the buffers that a call makes if nothing is kept; `sizes` lists counts and bytes of equal buffers.
pub fn buffers(rates: &Rates, sizes: &[(usize, f64)]) -> f64 {
    sizes
        .iter()
        .map(|(count, bytes)| *count as f64 * bytes * rates.buffer.at(*bytes))
        .sum()
}

/// The part of `total` that slice `slice` of `slices` gets, computed as in the executor.
pub fn share(total: usize, slice: usize, slices: usize) -> std::ops::Range<usize> {
    let cut = |slice: usize| (total as u128 * slice as u128 / slices as u128) as usize;
    cut(slice)..cut(slice + 1)
}
