//! A device's figures in cycles of its clock.

use gauntlet_device::{Arch, Device, Gpu};
use gauntlet_problem::{AttentionFormat, Problem};
use gauntlet_schedule::Schedule;
use gauntlet_schedule::resources::{by_mma_sync, multiplied_bytes, multiplied_value_bytes};

use super::assumed;
use crate::estimate::MissingFigure;

/// What one multiprocessor, and what they share, does a cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Machine {
    pub(super) arch: Arch,
    /// Cycles a second under load.
    pub(super) clock: f64,
    /// The highest clock there is.
    pub(super) boost: f64,
    pub(super) processors: usize,
    /// Bytes a cycle from memory, all multiprocessors together: what was attained.
    pub(super) memory_rate: f64,
    /// Bytes a second as published.
    pub(super) published_bandwidth: f64,
    /// Bytes a cycle from the second-level cache, all together.
    pub(super) cache_rate: f64,
    pub(super) cache_size: f64,
    /// Bytes a cycle into and out of one multiprocessor by bulk copies, one after another.
    pub(super) copy_rate: f64,
    /// Bytes over the cycles that each more of them delays the end of a copy.
    pub(super) arrival_rate: f64,
    /// The most one bulk copy moves.
    pub(super) box_bytes: f64,
    /// How much longer a copy takes while the matrix unit works.
    pub(super) beside_products: f64,
    /// Cycles from the start of a bulk copy to its first bytes, from memory and from the cache.
    pub(super) copy_latency: [f64; 2],
    /// Cycles from a load to its value, from memory and from the cache.
    pub(super) load_latency: [f64; 2],
    /// Bytes a cycle of one multiprocessor's shared memory.
    pub(super) shared_rate: f64,
    /// Floating-point operations a cycle in the format that is multiplied.
    pub(super) product_rate: f64,
    /// Cycles of a product beyond those for which it occupies the unit; of one that spans a pair.
    pub(super) product_latency: [f64; 2],
    /// Cycles of a batch of products beside them.
    pub(super) batch: f64,
    /// Exponentials a cycle.
    pub(super) exponential_rate: f64,
    /// Bytes a cycle out of tensor memory.
    pub(super) tensor_memory_rate: f64,
    /// Cycles to and from a counter in memory.
    pub(super) counter: f64,
    /// Cycles that a cluster's barrier takes.
    pub(super) cluster_barrier: f64,
    /// Cycles that starting the first bulk copy of a step takes a producer, and each further one.
    pub(super) bulk_issue: [f64; 2],
    /// NVFP4 values converted to fp16 a cycle, in registers.
    pub(super) conversion_rate: f64,
    /// The same by way of shared memory, its reads and writes counted, where that is known.
    pub(super) conversion_through_shared: Option<f64>,
    /// Bytes a cycle that threads write in half sectors.
    pub(super) half_sectors: f64,
    /// The same of all multiprocessors together; infinite where memory is the only limit known.
    pub(super) half_sectors_together: f64,
    /// Bytes a cycle of whole rows out of the staging buffer.
    pub(super) row_rate: f64,
    /// Cycles from one signal to who waits for it.
    pub(super) signal: f64,
    /// Cycles in which one group of warps meets, and what each further one adds.
    pub(super) synchronise: [f64; 2],
    /// Cycles from a block's place to its first instruction.
    pub(super) block_start: f64,
}

impl Machine {
    pub(super) fn of(device: &Device, problem: &Problem) -> Result<Self, MissingFigure> {
        let missing = |figure| MissingFigure {
            device: device.name.clone(),
            figure,
        };
        let gpu = device.gpu.as_ref().ok_or_else(|| missing("[gpu] table"))?;
        let frequency = device.clock.as_ref().ok_or_else(|| missing("clock"))?;
        let clock = frequency.attainable();
        let bandwidth = device.memory.bandwidth.as_ref();
        let bandwidth = bandwidth.ok_or_else(|| missing("memory bandwidth"))?;
        let processors = device.processors.get().max(1.0);
        let load_latency =
            load_latency(device, clock).ok_or_else(|| missing("latency of memory, or gpu.pipeline.copy"))?;
        let copy = gpu.pipeline.copy.as_ref();
        let products = gpu.pipeline.products.as_ref();
        let products = products.ok_or_else(|| missing("gpu.pipeline.products"))?;
        let copy_rate = copy.map_or(assumed::CACHE_RATE, |copy| copy.rate.get() / clock);
        let latency = products.latency.get();
        let pipeline = &gpu.pipeline;
        let stores = pipeline.stores.as_ref();
        let cycles = |time: f64| time * clock;
        Ok(Self {
            arch: device.arch,
            clock,
            boost: frequency.get().max(clock),
            processors: processors as usize,
            memory_rate: bandwidth.attainable() / clock,
            published_bandwidth: bandwidth.get().max(bandwidth.attainable()),
            cache_rate: device
                .memory
                .l2_bandwidth
                .as_ref()
                .map_or(processors * assumed::CACHE_RATE, |figure| figure.get() / clock),
            cache_size: device.memory.l2_size.as_ref().map_or(0.0, |figure| figure.get()),
            copy_rate,
            arrival_rate: copy
                .and_then(|copy| copy.arrival_rate.as_ref())
                .map_or(copy_rate, |figure| figure.get() / clock),
            box_bytes: copy.map_or(f64::INFINITY, |copy| copy.largest.get()),
            beside_products: copy
                .and_then(|copy| copy.beside_products.as_ref())
                .map_or(1.0, |figure| figure.get()),
            copy_latency: copy.map_or(load_latency, |copy| {
                [cycles(copy.latency.get()), cycles(copy.l2_latency.get())]
            }),
            load_latency,
            shared_rate: gpu.shared_memory_rate.get(),
            product_rate: product_rate(problem, gpu),
            product_latency: [
                latency,
                products
                    .pair_latency
                    .as_ref()
                    .map_or(latency, |figure| figure.get()),
            ],
            batch: products.batch.as_ref().map_or(0.0, |figure| figure.get()),
            exponential_rate: gpu.exp_rate.get(),
            tensor_memory_rate: gpu
                .pipeline
                .tensor_memory_read
                .as_ref()
                .map_or(f64::INFINITY, |figure| figure.get()),
            counter: gpu
                .pipeline
                .counter
                .as_ref()
                .map_or(0.0, |figure| cycles(figure.get())),
            cluster_barrier: gpu
                .pipeline
                .cluster_barrier
                .as_ref()
                .map_or(0.0, |figure| cycles(figure.get())),
            bulk_issue: [
                copy.and_then(|copy| copy.issue.as_ref())
                    .map_or(assumed::BULK_ISSUE, |figure| figure.get()),
                assumed::BULK_ISSUE,
            ],
            conversion_rate: pipeline
                .conversion
                .as_ref()
                .map_or(assumed::CONVERTED, |figure| figure.get()),
            conversion_through_shared: pipeline
                .conversion_through_shared
                .as_ref()
                .map(|figure| figure.get()),
            half_sectors: stores.map_or(assumed::HALF_SECTORS, |stores| stores.halves.get()),
            half_sectors_together: stores
                .map_or(f64::INFINITY, |stores| stores.halves_together.get() * processors),
            row_rate: stores.map_or(copy_rate, |stores| stores.rows.get()),
            signal: pipeline
                .hand_over
                .as_ref()
                .map_or(assumed::SIGNAL, |figure| figure.get()),
            synchronise: pipeline
                .block_barrier
                .as_ref()
                .map_or([assumed::SYNCHRONISE, 0.0], |barrier| {
                    [barrier.four_warps.get(), barrier.further_four.get()]
                }),
            block_start: assumed::BLOCK_START,
        })
    }

    /// The machine at the rate of the products that a schedule asks for.
    pub(super) fn scheduled(self, problem: &Problem, schedule: &Schedule, device: &Device) -> Self {
        let (Problem::Attention(attention), Some(gpu)) = (problem, device.gpu.as_ref()) else {
            return self;
        };
        let rate = match gpu.fp8_rate.as_ref() {
            Some(narrow) if multiplied_bytes(schedule, attention) == 1 => {
                // Of both products together, which are of one size.
                let of_values = match multiplied_value_bytes(schedule, attention, self.arch) {
                    1 => narrow.get(),
                    _ => gpu.fp16_rate.get(),
                };
                2.0 / (1.0 / narrow.get() + 1.0 / of_values)
            }
            _ => gpu.fp16_rate.get(),
        };
        let share = if self.arch == Arch::Sm90a && by_mma_sync(schedule, self.arch) {
            assumed::MMA_SYNC_SHARE
        } else {
            1.0
        };
        Self {
            product_rate: rate * share,
            ..self
        }
    }
}

/// From memory and from the cache, as the description has it; where it has none, those of a bulk copy, which are a
/// little longer.
fn load_latency(device: &Device, clock: f64) -> Option<[f64; 2]> {
    let memory = &device.memory;
    let bulk = device.gpu.as_ref().and_then(|gpu| gpu.pipeline.copy.as_ref());
    let from_memory = memory
        .latency
        .as_ref()
        .map(|figure| figure.get())
        .or_else(|| bulk.map(|copy| copy.latency.get() * clock))?;
    let from_cache = memory
        .l2_latency
        .as_ref()
        .map(|figure| figure.get())
        .or_else(|| memory.l2_latency_time.as_ref().map(|figure| figure.get() * clock))
        .or_else(|| bulk.map(|copy| copy.l2_latency.get() * clock))?;
    Some([from_memory, from_cache])
}

/// Operations a cycle in the narrowest format that the device multiplies without loss.
pub(crate) fn product_rate(problem: &Problem, gpu: &Gpu) -> f64 {
    let narrow = match problem {
        Problem::GroupedGemm(_) => gpu.fp4_rate.as_ref(),
        Problem::Attention(attention) => match attention.format {
            AttentionFormat::E4m3 => gpu.fp8_rate.as_ref(),
            AttentionFormat::Int8 | AttentionFormat::F16 | AttentionFormat::Bf16 => None,
        },
    };
    narrow.unwrap_or(&gpu.fp16_rate).get()
}
