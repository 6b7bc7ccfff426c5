//! What a schedule should take, with an error bar: the simulation, and how far such simulations were off before.

use gauntlet_device::{Arch, Device, Figure};
use gauntlet_operations::Operation;
use gauntlet_operations::Schedule;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::count;
use crate::gpu;
use crate::host::HostTerm;
use crate::simulate::{break_down, simulate};

/// Mean error, as a share, of a comparable model: gemm-model's waves on a B200 reach 37, 34 and 25 % in fp16, fp8
/// and NVFP4. The worst of them is taken.
const MEAN_ERROR: f64 = 0.37;

/// Standard deviations over mean absolute deviations of a normal distribution, √(π/2).
const DEVIATION_OVER_MEAN: f64 = 1.2533;

/// Standard deviations from the middle to either end of a 90 % interval.
pub(crate) const NINETY_PERCENT: f64 = 1.645;

/// What a problem should take with a schedule on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Estimate {
    /// The likeliest time.
    pub seconds: f64,
    /// The lower end of a 90 % interval, never under the roofline of a GPU.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What the interval rests on.
    pub basis: Basis,
    /// The time at the highest rates, every operand moved once, nothing padded; operands in memory, not in a cache.
    pub roofline_seconds: f64,
    /// What the roofline is bound by.
    pub bound: Bound,
    /// What the time is made of; adds up to `seconds`.
    pub shares: Vec<Share>,
}

/// What an error bar rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The errors that were published of such models: nothing was measured on the device.
    #[default]
    Published,
    /// The same, though the rates were measured on the device: nobody has compared predictions with times there.
    Calibrated,
    /// The errors that were measured on the device itself.
    Validated,
}

impl Basis {
    /// What the estimates of a device rest on.
    pub fn of(device: &Device) -> Self {
        match device.calibration.as_deref() {
            None => Self::Published,
            Some(calibration) if calibration.quality.is_none() => Self::Calibrated,
            Some(_) => Self::Validated,
        }
    }

    /// What there is to know about the bar, in a few words.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Published => "not calibrated: bar from published models",
            Self::Calibrated => "calibrated, not validated: bar from published models",
            Self::Validated => "calibrated: bar from validation on this device",
        }
    }
}

/// The slower side of the roofline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Moving operands and results.
    Memory,
    /// Multiplying.
    Compute,
}

/// A named part of an estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// What the time goes to.
    pub name: String,
    /// How much of it.
    pub seconds: f64,
}

/// A figure without which nothing can be estimated.
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
/// [`MissingFigure`] if the device has no clock, a GPU no memory bandwidth, or a CPU no peak.
pub fn estimate(
    problem: &Operation,
    schedule: &Schedule,
    device: &Device,
) -> Result<Estimate, MissingFigure> {
    let host = HostTerm::default();
    let simulation = simulate(problem, schedule, device, host)?;
    let breakdown = break_down(problem, schedule, device, host)?;
    let (low, high) = error_bar(simulation.seconds, problem, device);
    let parts = breakdown.parts.iter().filter(|part| part.seconds > 0.0);
    Ok(Estimate {
        seconds: simulation.seconds,
        low,
        high,
        basis: Basis::of(device),
        roofline_seconds: simulation.roofline,
        bound: simulation.bound,
        shares: std::iter::once(share("roofline", breakdown.roofline))
            .chain(parts.map(|part| share(part.part.name(), part.seconds)))
            .collect(),
    })
}

/// The ends of a 90 % interval about a simulated time, the host's work left out; the lower is never under [`limit`].
pub fn error_bar(seconds: f64, problem: &Operation, device: &Device) -> (f64, f64) {
    let error = (error_deviation(device) * NINETY_PERCENT).exp();
    let low = seconds / error;
    let low = limit(problem, device).map_or(low, |limit| low.max(limit));
    (low, seconds * error)
}

/// The time that nothing can undercut, so that a measurement below it is broken: the roofline of a GPU. That of a CPU is
/// no such limit, since its clock is a guess and its peak that of fp32, which integer products exceed; there it follows
/// from a ceiling that surely holds. None where nothing is sure.
pub fn limit(problem: &Operation, device: &Device) -> Option<f64> {
    limit_of(problem, device, 0.0)
}

/// What a call may find in the last cache because the call before left it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cached {
    /// The result's place, written again before the cache has sent it to memory: operands are others each time.
    Results,
    /// That and the operands.
    Everything,
}

/// The same in calls one after another: of memory's traffic only what the last cache need not have, or cannot hold, is
/// sure. A cache of unknown size holds all.
pub fn repeated_limit(problem: &Operation, device: &Device, cached: Cached) -> Option<f64> {
    let cache = device.memory.l2_size.as_ref();
    let cache = cache.map_or(f64::INFINITY, Figure::most);
    let kept = match cached {
        Cached::Results => cache.min(problem.output_bytes() as f64),
        Cached::Everything => cache,
    };
    limit_of(problem, device, kept)
}

/// `kept` bytes of operands and results need not come from memory, nor go there.
fn limit_of(problem: &Operation, device: &Device, kept: f64) -> Option<f64> {
    if device.arch == Arch::Cpu {
        let ceiling = device.cpu.as_ref()?.ceiling.as_ref()?;
        return Some(count::flops(problem) / ceiling.get());
    }
    gpu::floor(problem, device, kept)
}

/// The standard deviation of the logarithm of time over estimate: as validated, else that of published models, errors
/// taken as log-normal. No CPU model's error is published, and the peak of one is a guess: without a calibration the
/// bar is twice as wide in logarithm.
fn error_deviation(device: &Device) -> f64 {
    let calibration = device.calibration.as_deref();
    if let Some(quality) = calibration.and_then(|calibration| calibration.quality.as_ref()) {
        return quality.log_deviation;
    }
    let deviation = MEAN_ERROR * DEVIATION_OVER_MEAN;
    if device.arch == Arch::Cpu && calibration.is_none() {
        2.0 * deviation
    } else {
        deviation
    }
}

/// The standard deviation of the logarithm of measured over estimated speed-up of one schedule over another.
///
/// As validated, what two schedules of one shape have in common cancels. Otherwise each errs on its own: models of this
/// kind order the schedules of one shape with a rank correlation of only 0.36 to 0.71, so little of the error cancels.
pub(crate) fn ratio_deviation(device: &Device) -> f64 {
    let calibration = device.calibration.as_deref();
    let one = match calibration.and_then(|calibration| calibration.quality.as_ref()) {
        Some(quality) => quality.log_deviation_in_shape,
        None => error_deviation(device),
    };
    std::f64::consts::SQRT_2 * one
}

fn share(name: &str, seconds: f64) -> Share {
    Share {
        name: name.to_owned(),
        seconds,
    }
}
