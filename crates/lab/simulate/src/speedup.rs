//! The predicted gain of one schedule over another.

use gauntlet_device::Device;
use gauntlet_problems::Schedule;
use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::estimate::{MissingFigure, NINETY_PERCENT, RATIO_DEVIATION};
use crate::gpu::simulate;
use crate::host::HostTerm;

/// A speed-up as a ratio: 1.25 is a quarter faster, 0.8 a fifth slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speedup {
    /// The lower end of a 90 % interval.
    pub low: f64,
    /// The most likely value.
    pub middle: f64,
    /// The upper end.
    pub high: f64,
}

/// The geometric mean over a suite of the baseline's estimate divided by the candidate's; all 1 for an empty suite.
///
/// Estimates of one kind have the same error on all shapes, so a longer suite does not narrow the interval.
///
/// # Errors
/// As [`estimate()`](crate::estimate()).
pub fn predicted_speedup(
    problems: &[Problem],
    baseline: &Schedule,
    candidate: &Schedule,
    device: &Device,
) -> Result<Speedup, MissingFigure> {
    if problems.is_empty() {
        return Ok(Speedup {
            low: 1.0,
            middle: 1.0,
            high: 1.0,
        });
    }
    let mut logarithms = 0.0;
    for problem in problems {
        let before = simulate(problem, baseline, device, HostTerm::default())?.seconds;
        let after = simulate(problem, candidate, device, HostTerm::default())?.seconds;
        // A problem without work takes no time under either schedule.
        if before > 0.0 && after > 0.0 {
            logarithms += (before / after).ln();
        }
    }
    let middle = (logarithms / problems.len() as f64).exp();
    let width = (RATIO_DEVIATION * NINETY_PERCENT).exp();
    Ok(Speedup {
        low: middle / width,
        middle,
        high: middle * width,
    })
}
