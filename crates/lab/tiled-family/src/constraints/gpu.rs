//! Capacities every NVIDIA GPU has, with the figures of the device.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{accumulators, block_bytes};

use super::{CLUSTER, EPILOGUE, Rule, STAGES, Situation, TILE_K, TILE_N};
use crate::TiledFamily;

/// Blocks a cluster may have without opting in to a size that not every part supports.
const PORTABLE_CLUSTER: usize = 8;

/// The source of the rule about [`registers`].
pub const REGISTERS: &str =
    "CUDA C++ Programming Guide, technical specifications: registers of a multiprocessor";

/// Shared memory of a block, and blocks of a cluster.
pub const fn rules<F: TiledFamily>() -> &'static [Rule<F>] {
    rules! {
        [STAGES, TILE_K, TILE_N, EPILOGUE],
            "CUDA C++ Programming Guide, technical specifications: shared memory a block",
            shared_memory;
        [CLUSTER],
            "CUDA C++ Programming Guide, thread block clusters: compute capability 9.0, at most 8 portably",
            cluster;
    }
}

fn shared_memory<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    let limit = situation.gpu()?.shared_memory_block.get();
    let needed = block_bytes(situation.schedule, situation.operation, situation.arch());
    (needed as f64 > limit).then(|| {
        format!(
            "tile {} with this and a {} epilogue takes {needed} B of shared memory, and a block on {} has {limit} B",
            situation.schedule.tile, situation.schedule.epilogue, situation.device.name
        )
    })
}

fn cluster<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    let cluster = situation.schedule.cluster;
    let blocks = cluster.m * cluster.n;
    match situation.arch() {
        Arch::Sm90a | Arch::Sm100a if blocks > PORTABLE_CLUSTER => Some(format!(
            "{blocks} blocks are more than the {PORTABLE_CLUSTER} a cluster may portably have"
        )),
        arch @ (Arch::Sm80 | Arch::Sm89) if blocks > 1 => Some(format!(
            "kernels for {arch} have no clusters; they begin with sm_90"
        )),
        _ => None,
    }
}

/// Depth of a tile, in steps of `step`, of the instruction `unit`.
pub fn depth<F: TiledFamily>(situation: &Situation<F>, unit: &str, step: usize) -> Option<String> {
    (!situation.schedule.tile.k.is_multiple_of(step)).then(|| {
        format!(
            "{unit} on {} sums {step} products at a time",
            situation.device.arch
        )
    })
}

/// Sums of a tile in the registers of a multiprocessor.
pub fn registers<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    let limit = situation.gpu()?.registers.get();
    let needed = accumulators(situation.schedule, situation.operation);
    (needed as f64 >= limit).then(|| {
        format!("{needed} fp32 accumulators leave nothing of the {limit} registers of a multiprocessor")
    })
}
