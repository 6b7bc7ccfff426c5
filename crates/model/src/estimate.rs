//! A roofline with waves.
//!
//! The slower of two sides — the busiest processor's products, padding included, and the memory traffic at the best
//! bandwidth anyone measured — times what is lost when copies and products do not overlap, plus the cost of
//! starting. Left out, because no figure for it is at hand: dequantising, stores that wait, barriers, work on the
//! host, and any effect of roles, lookup, setup and clusters.

use gauntlet_device::{Arch, Device, Gpu};
use gauntlet_problem::{AttentionFormat, Problem};
use gauntlet_schedule::resources::{block_bytes, tensor_memory_columns};
use gauntlet_schedule::{Order, Schedule};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::count;
use crate::tiles::{self, Class};

/// Mean error, as a share, of a comparable model: gemm-model's waves on a B200 reach 37, 34 and 25 % in fp16, fp8
/// and NVFP4. The worst of them is taken.
const MEAN_ERROR: f64 = 0.37;

/// Standard deviations over mean absolute deviations of a normal distribution, √(π/2).
const DEVIATION_OVER_MEAN: f64 = 1.2533;

/// Standard deviations from the middle to either end of a 90 % interval.
const NINETY_PERCENT: f64 = 1.645;

/// How long a loop takes over its slower side, by operand buffers in flight; from memory, on a H100 (microbenchmark,
/// clocks not pinned). One buffer was not measured: from 2 on, buffers × factor is about 4.4 as it is where latency
/// limits, so one is put at 4.4.
const OVERLAP: [(f64, f64); 5] = [(1.0, 4.4), (2.0, 2.21), (3.0, 1.57), (4.0, 1.32), (6.0, 1.27)];

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
    /// The time at the highest published rates, every operand moved once, nothing padded; operands in memory, not in
    /// a cache.
    pub roofline_seconds: f64,
    /// What the roofline is bound by.
    pub bound: Bound,
    /// What the time is made of; adds up to `seconds`.
    pub shares: Vec<Share>,
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
pub fn estimate(problem: &Problem, schedule: &Schedule, device: &Device) -> Result<Estimate, MissingFigure> {
    let rates = Rates::of(problem, device)?;
    let (compute_floor, memory_floor) = rates.floors(problem);
    let roofline = compute_floor.max(memory_floor);

    let classes = tiles::classes(problem, schedule);
    let busy = |class: &Class| {
        let exponentials = rates.exponentials.map_or(0.0, |rate| class.exponentials / rate);
        (class.flops / rates.products).max(exponentials)
    };
    let compute = tiles::busiest(&classes, rates.processors as usize, schedule.order, busy);
    let traffic = count::bytes(problem) + count::partial_bytes(problem, schedule);
    let memory = rates.memory.map_or(0.0, |(_, attainable)| traffic / attainable);
    let work = compute.max(memory).max(roofline);
    let overlapped = work * overlap(problem, schedule, device);
    let seconds = overlapped + rates.launch;

    let error = error_factor(device.arch);
    let low = seconds / error;
    Ok(Estimate {
        seconds,
        low: limit(problem, device).map_or(low, |limit| low.max(limit)),
        high: seconds * error,
        roofline_seconds: roofline,
        bound: if memory_floor >= compute_floor {
            Bound::Memory
        } else {
            Bound::Compute
        },
        shares: vec![
            share("roofline", roofline),
            share("padding, waves and attainable bandwidth", work - roofline),
            share("copies and products that do not overlap", overlapped - work),
            share("start of the kernel", rates.launch),
        ],
    })
}

/// The time that nothing can undercut, so that a measurement below it is broken: the roofline of a GPU. That of a CPU is
/// no such limit, since its clock is a guess and its peak that of fp32, which integer products exceed; there it follows
/// from a ceiling that surely holds. None where nothing is sure.
pub fn limit(problem: &Problem, device: &Device) -> Option<f64> {
    if device.arch == Arch::Cpu {
        let ceiling = device.cpu.as_ref()?.ceiling.as_ref()?;
        return Some(count::flops(problem) / ceiling.get());
    }
    let (compute, memory) = Rates::of(problem, device).ok()?.floors(problem);
    Some(compute.max(memory))
}

/// By how much the time may be off either way, with 90 % confidence: errors taken as log-normal with the
/// mean of models like this one. No CPU model's error is at hand, so there the bar is twice as wide in logarithm.
pub(crate) fn error_factor(arch: Arch) -> f64 {
    let width = error_deviation(arch) * NINETY_PERCENT;
    width.exp()
}

/// The standard deviation of the logarithm of time over estimate.
pub(crate) fn error_deviation(arch: Arch) -> f64 {
    let deviation = MEAN_ERROR * DEVIATION_OVER_MEAN;
    if arch == Arch::Cpu {
        2.0 * deviation
    } else {
        deviation
    }
}

/// Rates of one processor, and of the memory, a second.
struct Rates {
    processors: f64,
    products: f64,
    exponentials: Option<f64>,
    /// The highest reported and the attainable bandwidth.
    memory: Option<(f64, f64)>,
    launch: f64,
}

impl Rates {
    /// The least time for multiplying, and for moving.
    fn floors(&self, problem: &Problem) -> (f64, f64) {
        let compute = count::flops(problem) / self.products / self.processors;
        let memory = self
            .memory
            .map_or(0.0, |(published, _)| count::bytes(problem) / published);
        (compute, memory)
    }

    fn of(problem: &Problem, device: &Device) -> Result<Self, MissingFigure> {
        let missing = |figure| MissingFigure {
            device: device.name.clone(),
            figure,
        };
        let processors = device.processors.get().max(1.0);
        let memory = device
            .memory
            .bandwidth
            .as_ref()
            .map(|figure| (figure.get(), figure.attainable()));
        let Some(gpu) = &device.gpu else {
            let peak = device.cpu.as_ref().and_then(|cpu| cpu.fp32_peak.as_ref());
            let products = peak
                .ok_or_else(|| missing("fp32-peak, which follows from its clock"))?
                .get()
                / processors;
            return Ok(Self {
                processors,
                products,
                exponentials: None,
                memory,
                launch: 0.0,
            });
        };
        let clock = device.clock.as_ref().ok_or_else(|| missing("clock"))?.get();
        let launch = gpu.launch.cold_read.as_ref().or(gpu.launch.ramp.as_ref());
        Ok(Self {
            processors,
            products: product_rate(problem, gpu) * clock,
            exponentials: Some(gpu.exp_rate.get() * clock),
            memory: Some(memory.ok_or_else(|| missing("memory bandwidth"))?),
            launch: launch.map_or(0.0, |figure| figure.get()),
        })
    }
}

/// Operations a clock and multiprocessor in the narrowest format the device multiplies without loss: NVFP4 as it is
/// where there are such units, else dequantised to fp16 (exactly; e4m3 would round).
pub(crate) fn product_rate(problem: &Problem, gpu: &Gpu) -> f64 {
    let narrow = match problem {
        Problem::GroupedGemm(_) => gpu.fp4_rate.as_ref(),
        Problem::Attention(attention) => match attention.format {
            AttentionFormat::E4m3 => gpu.fp8_rate.as_ref(),
            AttentionFormat::F16 | AttentionFormat::Bf16 => None,
        },
    };
    narrow.unwrap_or(&gpu.fp16_rate).get()
}

/// [`OVERLAP`] at the buffers in flight on a multiprocessor: those of all its resident blocks. On a CPU 1: caches and
/// the order of execution overlap loads by themselves, and nothing was measured.
fn overlap(problem: &Problem, schedule: &Schedule, device: &Device) -> f64 {
    let Some(gpu) = &device.gpu else { return 1.0 };
    let buffers = (schedule.stages * resident_blocks(problem, schedule, device, gpu)) as f64;
    let after = OVERLAP.iter().position(|(at, _)| *at >= buffers);
    match after {
        None => OVERLAP[OVERLAP.len() - 1].1,
        Some(0) => OVERLAP[0].1,
        Some(index) => {
            let ((left, from), (right, to)) = (OVERLAP[index - 1], OVERLAP[index]);
            from + (to - from) * (buffers - left) / (right - left)
        }
    }
}

/// Blocks that share a multiprocessor: as many as its shared and tensor memory hold, no more than there are tiles
/// for; one where blocks are persistent.
fn resident_blocks(problem: &Problem, schedule: &Schedule, device: &Device, gpu: &Gpu) -> usize {
    if schedule.order != Order::PerTile {
        return 1;
    }
    let tiles: usize = tiles::classes(problem, schedule)
        .iter()
        .map(|class| class.count)
        .sum();
    let mut blocks = tiles.div_ceil(device.processors.get() as usize);
    blocks =
        blocks.min(gpu.shared_memory.get() as usize / block_bytes(schedule, problem, device.arch).max(1));
    if let Some(columns) = &gpu.tensor_memory {
        // Allocations are powers of two, at least 32 columns (PTX ISA, tcgen05.alloc).
        let needed = tensor_memory_columns(schedule, problem)
            .max(32)
            .next_power_of_two();
        blocks = blocks.min(columns.get() as usize / needed);
    }
    blocks.max(1)
}

fn share(name: &str, seconds: f64) -> Share {
    Share {
        name: name.to_owned(),
        seconds,
    }
}
