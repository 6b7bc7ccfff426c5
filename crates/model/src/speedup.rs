//! What one schedule should gain over another.

use gauntlet_device::Device;
use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;
use serde::{Deserialize, Serialize};

use crate::estimate::{MissingFigure, error_deviation, estimate};

/// Standard deviations from the middle to either end of a 90 % interval.
const NINETY_PERCENT: f64 = 1.645;

/// A speed-up as a ratio: 1.25 is a quarter faster, 0.8 a fifth slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speedup {
    /// The lower end of a 90 % interval.
    pub low: f64,
    /// The likeliest.
    pub middle: f64,
    /// The upper end.
    pub high: f64,
}

/// The geometric mean over a suite of the baseline's estimate over the candidate's; all 1 for an empty suite.
///
/// Both estimates err on their own: models of this kind order the schedules of one shape with a rank correlation of
/// only 0.36 to 0.71, so little of the error cancels; and they err alike on all shapes, so a longer suite narrows
/// nothing.
///
/// # Errors
/// As [`estimate`].
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
        let before = estimate(problem, baseline, device)?.seconds;
        let after = estimate(problem, candidate, device)?.seconds;
        // A problem without work takes no time with either.
        if before > 0.0 && after > 0.0 {
            logarithms += (before / after).ln();
        }
    }
    let middle = (logarithms / problems.len() as f64).exp();
    let width = (std::f64::consts::SQRT_2 * error_deviation(device.arch) * NINETY_PERCENT).exp();
    Ok(Speedup {
        low: middle / width,
        middle,
        high: middle * width,
    })
}
