//! Estimates of a schedule's time with an error bar, from the simulation and the errors of earlier simulations.

use gauntlet_device::{Arch, Device, Figure};
use gauntlet_problems::Schedule;
use gauntlet_task::Cached;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Problem;
use crate::count;
use crate::gpu::{self, break_down, simulate};
use crate::host::HostTerm;

/// The mean relative error of a comparable model: gemm-model's waves on a B200 have 37, 34 and 25 % in fp16, fp8 and
/// NVFP4. The worst is used.
const MEAN_ERROR: f64 = 0.37;

/// The standard deviation of a normal distribution divided by its mean absolute deviation, √(π/2).
const DEVIATION_OVER_MEAN: f64 = 1.2533;

/// The standard deviation of the logarithm of time over estimate, with errors assumed log-normal.
const DEVIATION: f64 = MEAN_ERROR * DEVIATION_OVER_MEAN;

/// Standard deviations from the middle to either end of a 90 % interval.
pub(crate) const NINETY_PERCENT: f64 = 1.645;

/// The estimated time of a problem under a schedule on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Estimate {
    /// The most likely time.
    pub seconds: f64,
    /// The lower end of a 90 % interval, never below the roofline.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The time at the highest rates, with every operand moved once from memory rather than a cache, and no padding.
    pub roofline_seconds: f64,
    /// The side that limits the roofline.
    pub bound: Bound,
    /// The parts of the time; they add up to `seconds`.
    pub shares: Vec<Share>,
}

/// The slower side of the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Moving operands and results.
    Memory,
    /// Multiplying.
    Compute,
}

/// A named part of an estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The name of the part.
    pub name: String,
    /// Its time.
    pub seconds: f64,
}

/// A required figure that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "nothing can be estimated on `{device}`: its description has no {figure}; add the figure with its unit and source"
)]
pub struct MissingFigure {
    /// The device.
    pub device: String,
    /// The figure.
    pub figure: &'static str,
}

/// Estimates one problem.
///
/// # Errors
/// As [`simulate`].
pub fn estimate(problem: &Problem, schedule: &Schedule, device: &Device) -> Result<Estimate, MissingFigure> {
    let host = HostTerm::default();
    let simulation = simulate(problem, schedule, device, host)?;
    let breakdown = break_down(problem, schedule, device, host)?;
    let (low, high) = error_bar(simulation.seconds, problem, device);
    let parts = breakdown.parts.iter().filter(|part| part.seconds > 0.0);
    Ok(Estimate {
        seconds: simulation.seconds,
        low,
        high,
        roofline_seconds: simulation.roofline,
        bound: simulation.bound,
        shares: std::iter::once(share("roofline", breakdown.roofline))
            .chain(parts.map(|part| share(part.part.name(), part.seconds)))
            .collect(),
    })
}

/// The ends of a 90 % interval around a simulated time without host work; the lower end is never below [`limit`].
pub fn error_bar(seconds: f64, problem: &Problem, device: &Device) -> (f64, f64) {
    let error = (DEVIATION * NINETY_PERCENT).exp();
    let low = seconds / error;
    let low = limit(problem, device).map_or(low, |limit| low.max(limit));
    (low, seconds * error)
}

/// The time that no call can undercut; a measurement below it is faulty. On a GPU it is the roofline. A CPU's roofline
/// is no such limit, because its clock is a guess and integer products exceed its fp32 peak; there the limit follows
/// from a safe upper bound of the rates. `None` if no bound is certain.
pub fn limit(problem: &Problem, device: &Device) -> Option<f64> {
    limit_of(problem, device, 0.0)
}

/// The limit for a call that finds some of its memory in the last-level cache: it counts only the traffic that the cache
/// cannot save. A cache of unknown size counts as holding everything.
pub fn repeated_limit(problem: &Problem, device: &Device, cached: Cached) -> Option<f64> {
    let cache = device.memory.l2_size.as_ref();
    let cache = cache.map_or(f64::INFINITY, Figure::most);
    let kept = match cached {
        Cached::Nothing => 0.0,
        Cached::Results => cache.min(problem.operation().output_bytes() as f64),
        Cached::Everything => cache,
    };
    limit_of(problem, device, kept)
}

/// The limit if `kept` bytes of operands and results need not be moved from or to memory.
fn limit_of(problem: &Problem, device: &Device, kept: f64) -> Option<f64> {
    if device.arch == Arch::Cpu {
        let ceiling = device.cpu.as_ref()?.ceiling.as_ref()?;
        return Some(count::flops(problem) / ceiling.get());
    }
    gpu::floor(problem, device, kept)
}

/// The standard deviation of the logarithm of measured over estimated speed-up of one schedule over another. The errors
/// of the two count as independent: models of this kind order the schedules of one shape with a rank correlation of only
/// 0.36 to 0.71, so little of the error cancels.
pub(crate) const RATIO_DEVIATION: f64 = std::f64::consts::SQRT_2 * DEVIATION;

fn share(name: &str, seconds: f64) -> Share {
    Share {
        name: name.to_owned(),
        seconds,
    }
}
