//! A roofline with waves, for GPUs.
//!
//! The slower of two sides — the busiest processor's products, padding included, and the memory traffic at the best
//! bandwidth anyone measured — times what is lost when copies and products do not overlap, plus the cost of
//! starting. Left out, because no figure for it is at hand: dequantising, stores that wait, barriers, work on the
//! host, and any effect of roles, lookup, setup and clusters.

use gauntlet_device::{Device, Gpu};
use gauntlet_problem::{AttentionFormat, Problem};
use gauntlet_schedule::resources::{block_bytes, tensor_memory_columns};
use gauntlet_schedule::{Order, Schedule};

use crate::count;
use crate::estimate::{Bound, MissingFigure};
use crate::simulate::Simulation;
use crate::tiles::{self, Class};

/// How long a loop takes over its slower side, by operand buffers in flight; from memory, on a H100 (microbenchmark,
/// clocks not pinned). One buffer was not measured: from 2 on, buffers × factor is about 4.4 as it is where latency
/// limits, so one is put at 4.4.
const OVERLAP: [(f64, f64); 5] = [(1.0, 4.4), (2.0, 2.21), (3.0, 1.57), (4.0, 1.32), (6.0, 1.27)];

/// The time of one call.
pub(crate) fn simulate(
    problem: &Problem,
    schedule: &Schedule,
    device: &Device,
) -> Result<Simulation, MissingFigure> {
    let rates = Rates::of(problem, device)?;
    let (compute_floor, memory_floor) = rates.floors(problem);
    let roofline = compute_floor.max(memory_floor);
    let classes = tiles::classes(problem, schedule);
    let busy = |class: &Class| (class.flops / rates.products).max(class.exponentials / rates.exponentials);
    let compute = tiles::busiest(&classes, rates.processors as usize, schedule.order, busy);
    let traffic = count::bytes(problem) + count::partial_bytes(problem, schedule);
    let work = compute.max(traffic / rates.memory.1).max(roofline);
    Ok(Simulation {
        seconds: work * overlap(problem, schedule, device) + rates.launch,
        roofline,
        bound: if memory_floor >= compute_floor {
            Bound::Memory
        } else {
            Bound::Compute
        },
    })
}

/// The time at the highest rates, every operand moved once.
pub(crate) fn floor(problem: &Problem, device: &Device) -> Option<f64> {
    let (compute, memory) = Rates::of(problem, device).ok()?.floors(problem);
    Some(compute.max(memory))
}

/// Rates of one processor, and of the memory, a second.
struct Rates {
    processors: f64,
    products: f64,
    exponentials: f64,
    /// The highest reported and the attainable bandwidth.
    memory: (f64, f64),
    launch: f64,
}

impl Rates {
    /// The least time for multiplying, and for moving.
    fn floors(&self, problem: &Problem) -> (f64, f64) {
        let compute = count::flops(problem) / self.products / self.processors;
        (compute, count::bytes(problem) / self.memory.0)
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
        let gpu = device.gpu.as_ref().ok_or_else(|| missing("[gpu] table"))?;
        let clock = device.clock.as_ref().ok_or_else(|| missing("clock"))?.get();
        let launch = gpu.launch.cold_read.as_ref().or(gpu.launch.ramp.as_ref());
        Ok(Self {
            processors,
            products: product_rate(problem, gpu) * clock,
            exponentials: gpu.exp_rate.get() * clock,
            memory: memory.ok_or_else(|| missing("memory bandwidth"))?,
            launch: launch.map_or(0.0, |figure| figure.get()),
        })
    }
}

/// Operations a clock and multiprocessor in the narrowest format the device multiplies without loss: NVFP4 as it is
/// where there are such units, else dequantised to fp16 (exactly; e4m3 would round).
fn product_rate(problem: &Problem, gpu: &Gpu) -> f64 {
    let narrow = match problem {
        Problem::GroupedGemm(_) => gpu.fp4_rate.as_ref(),
        Problem::Attention(attention) => match attention.format {
            AttentionFormat::E4m3 => gpu.fp8_rate.as_ref(),
            AttentionFormat::F16 | AttentionFormat::Bf16 => None,
        },
    };
    narrow.unwrap_or(&gpu.fp16_rate).get()
}

/// [`OVERLAP`] at the buffers in flight on a multiprocessor: those of all its resident blocks.
fn overlap(problem: &Problem, schedule: &Schedule, device: &Device) -> f64 {
    let resident = device
        .gpu
        .as_ref()
        .map_or(1, |gpu| resident_blocks(problem, schedule, device, gpu));
    let buffers = (schedule.stages * resident) as f64;
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
