//! A device's figures, converted to cycles of the multiprocessors' clock.
//!
//! The description gives figures that scale with that clock per clock (copies, the second-level cache, shared memory,
//! products), and others, such as the bandwidth of memory, per second.

use gauntlet_device::{Arch, Device, Dimension, Figure};
use gauntlet_problems::Schedule;
use gauntlet_problems::resources::kernel_arch;

use super::assumed;
use crate::Problem;
use crate::estimate::MissingFigure;

/// Rates and latencies of one multiprocessor, and of the resources that all share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// The instruction set of the kernels that compute the problem.
    pub arch: Arch,
    /// Clock under load, in Hz.
    pub clock: f64,
    /// The highest clock, in Hz.
    pub boost: f64,
    /// Multiprocessors.
    pub processors: usize,
    /// Bytes a cycle from memory, all multiprocessors together, as attained in measurements.
    pub memory_rate: f64,
    /// Bandwidth of memory as published, in bytes a second.
    pub published_bandwidth: f64,
    /// Bytes a cycle from the second-level cache, all together.
    pub cache_rate: f64,
    /// Bytes of the second-level cache.
    pub cache_size: f64,
    /// Bytes a cycle into and out of one multiprocessor by bulk copies, one after another.
    pub copy_rate: f64,
    /// Bytes a cycle at which the rest of a single copy follows its first bytes.
    pub arrival_rate: f64,
    /// The most bytes that one bulk copy moves.
    pub box_bytes: f64,
    /// How much longer a copy takes while the matrix unit works.
    pub beside_products: f64,
    /// Cycles from the start of a bulk copy to its first bytes, from memory and from the cache.
    pub copy_latency: [f64; 2],
    /// Cycles from a load to its value, from memory and from the cache.
    pub load_latency: [f64; 2],
    /// Bytes a cycle of one multiprocessor's shared memory.
    pub shared_rate: f64,
    /// Floating-point operations a cycle in the format that is multiplied.
    pub product_rate: f64,
    /// The share of the matrix unit's rate that `mma.sync` reaches.
    pub mma_sync_share: f64,
    /// Cycles from the end of a product's time in the unit to its result; the second is of a product that spans two blocks.
    pub product_latency: [f64; 2],
    /// Cycles that a batch of products takes besides the products.
    pub batch: f64,
    /// Exponentials a cycle.
    pub exponential_rate: f64,
    /// Bytes a cycle read from tensor memory.
    pub tensor_memory_rate: f64,
    /// Cycles of one round trip to a counter in memory.
    pub counter: f64,
    /// Cycles that a cluster's barrier takes.
    pub cluster_barrier: f64,
    /// Cycles for which a producer is busy starting the first bulk copy of a step, and each further one.
    pub bulk_issue: [f64; 2],
    /// NVFP4 values converted to fp16 a cycle, in registers.
    pub conversion_rate: f64,
    /// The same through shared memory, including its reads and writes, where that is known.
    pub conversion_through_shared: Option<f64>,
    /// Bytes a cycle that threads write in half sectors.
    pub half_sectors: f64,
    /// The same for all multiprocessors together; infinite where no limit but memory is known.
    pub half_sectors_together: f64,
    /// Bytes a cycle of whole rows out of the staging buffer.
    pub row_rate: f64,
    /// Cycles from a signal to the next instruction of the warps that wait for it.
    pub signal: f64,
    /// Cycles of a barrier for one group of warps, and for each further group.
    pub synchronise: [f64; 2],
    /// Cycles from the time when a block is assigned to a multiprocessor to its first instruction.
    pub block_start: f64,
}

impl Machine {
    /// The figures of a device, with the rate of products in the narrowest format that is exact for the problem.
    ///
    /// # Errors
    /// [`MissingFigure`] if the device is not a GPU or its description lacks a figure that a simulation needs.
    pub fn of(device: &Device, problem: &Problem) -> Result<Self, MissingFigure> {
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
        let arch = kernel_arch(problem.operation(), device.arch);
        // A description is about the GPU's own instructions: bulk copies, and products of its own matrix unit. Kernels for an
        // older instruction set use neither.
        let is_own = arch == device.arch;
        let copy = gpu.pipeline.copy.as_ref().filter(|_| is_own);
        let products = gpu.pipeline.products.as_ref();
        let products = products.ok_or_else(|| missing("gpu.pipeline.products"))?;
        let copy_rate = copy.map_or(assumed::CACHE_RATE, |copy| copy.rate.get());
        let (product_latency, batch) = if is_own {
            let latency = products.latency.get();
            let of_a_pair = get_or(&products.pair_latency, latency);
            ([latency, of_a_pair], get_or(&products.batch, 0.0))
        } else {
            ([assumed::MMA_SYNC_LATENCY; 2], 0.0)
        };
        let pipeline = &gpu.pipeline;
        let stores = pipeline.stores.as_ref();
        let cycles = |time: f64| time * clock;
        Ok(Self {
            arch,
            clock,
            boost: frequency.get().max(clock),
            processors: processors as usize,
            memory_rate: bandwidth.attainable() / clock,
            published_bandwidth: bandwidth.get().max(bandwidth.attainable()),
            cache_rate: processors * get_or(&device.memory.l2_rate, assumed::CACHE_RATE),
            cache_size: get_or(&device.memory.l2_size, 0.0),
            copy_rate,
            arrival_rate: copy.map_or(copy_rate, |copy| get_or(&copy.arrival_rate, copy_rate)),
            box_bytes: copy.map_or(f64::INFINITY, |copy| copy.largest.get()),
            beside_products: copy.map_or(1.0, |copy| get_or(&copy.beside_products, 1.0)),
            copy_latency: copy.map_or(load_latency, |copy| {
                [cycles(copy.latency.get()), cycles(copy.l2_latency.get())]
            }),
            load_latency,
            shared_rate: gpu.shared_memory_rate.get(),
            product_rate: problem.model().product_rate(gpu),
            mma_sync_share: mma_sync_share(device.arch),
            product_latency,
            batch,
            exponential_rate: gpu.exp_rate.get(),
            tensor_memory_rate: get_or(&pipeline.tensor_memory_read, f64::INFINITY),
            counter: cycles(get_or(&pipeline.counter, 0.0)),
            cluster_barrier: cycles(get_or(&pipeline.cluster_barrier, 0.0)),
            bulk_issue: [
                copy.map_or(assumed::BULK_ISSUE, |copy| {
                    get_or(&copy.issue, assumed::BULK_ISSUE)
                }),
                assumed::BULK_ISSUE,
            ],
            conversion_rate: get_or(&pipeline.conversion, assumed::CONVERTED),
            conversion_through_shared: pipeline
                .conversion_through_shared
                .as_ref()
                .map(|figure| figure.get()),
            half_sectors: stores.map_or(assumed::HALF_SECTORS, |stores| stores.halves.get()),
            half_sectors_together: stores
                .map_or(f64::INFINITY, |stores| stores.halves_together.get() * processors),
            row_rate: stores.map_or(copy_rate, |stores| stores.rows.get()),
            signal: get_or(&pipeline.hand_over, assumed::SIGNAL),
            synchronise: pipeline
                .block_barrier
                .as_ref()
                .map_or([assumed::SYNCHRONISE, 0.0], |barrier| {
                    [barrier.four_warps.get(), barrier.further_four.get()]
                }),
            block_start: assumed::BLOCK_START,
        })
    }

    /// The machine with the product rate of the instructions that a schedule uses.
    pub fn scheduled(self, problem: &Problem, schedule: &Schedule, device: &Device) -> Self {
        let rate = |gpu| problem.model().scheduled_rate(schedule, &self, gpu);
        Self {
            product_rate: device.gpu.as_ref().map_or(self.product_rate, rate),
            ..self
        }
    }
}

/// The share of a GPU's rate of products that `mma.sync` reaches.
fn mma_sync_share(arch: Arch) -> f64 {
    match arch {
        Arch::Sm90a => assumed::MMA_SYNC_SHARE,
        Arch::Sm100a => assumed::MMA_SYNC_SHARE_OF_BLACKWELL,
        Arch::Cpu | Arch::Sm80 | Arch::Sm89 => 1.0,
    }
}

/// A figure that a description may lack.
fn get_or<D: Dimension>(figure: &Option<Figure<D>>, otherwise: f64) -> f64 {
    figure.as_ref().map_or(otherwise, Figure::get)
}

/// The latencies of a load from memory and from the cache. If the description has none, those of a bulk copy are used;
/// they are a little longer.
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
