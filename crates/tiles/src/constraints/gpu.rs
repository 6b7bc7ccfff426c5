//! Capacities every NVIDIA GPU has, with the figures of the device.

use gauntlet_device::Arch;

use super::lever::{CLUSTER, EPILOGUE, STAGES, TILE_K, TILE_N};
use super::{Rule, Situation};
use crate::resources::block_bytes;

/// Blocks a cluster may have without opting in to a size that not every part supports.
const PORTABLE_CLUSTER: usize = 8;

pub(super) const RULES: &[Rule] = rules! {
    [STAGES, TILE_K, TILE_N, EPILOGUE],
        "CUDA C++ Programming Guide, technical specifications: shared memory a block",
        shared_memory;
    [CLUSTER],
        "CUDA C++ Programming Guide, thread block clusters: compute capability 9.0, at most 8 portably",
        cluster;
};

fn shared_memory(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.shared_memory_block.get();
    let needed = block_bytes(situation.schedule, situation.operation, situation.arch());
    (needed as f64 > limit).then(|| {
        format!(
            "tile {} with this and a {} epilogue takes {needed} B of shared memory, and a block on {} has {limit} B",
            situation.schedule.tile, situation.schedule.epilogue, situation.device.name
        )
    })
}

fn cluster(situation: &Situation) -> Option<String> {
    let cluster = situation.schedule.cluster;
    let blocks = cluster.m * cluster.n;
    match situation.arch() {
        Arch::Sm90a | Arch::Sm100a if blocks > PORTABLE_CLUSTER => Some(format!(
            "{blocks} blocks are more than the {PORTABLE_CLUSTER} a cluster may portably have"
        )),
        Arch::Sm80 | Arch::Sm89 if blocks > 1 => Some(format!(
            "{} has no clusters; they begin with sm_90",
            situation.arch()
        )),
        _ => None,
    }
}
