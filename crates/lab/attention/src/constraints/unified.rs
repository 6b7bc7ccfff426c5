//! What attention's unified kernel takes, on sm_100a and on sm_90a without roles.

use gauntlet_problems::Order;
use gauntlet_problems::resources::{FEW_QUERIES, by_mma_sync};
use gauntlet_tiled_family::constraints::{ORDER, ROLES, Rule, TILE_M, TILE_N};
use gauntlet_tiled_family::rules;

use super::Situation;
use super::words::listed;
use crate::AttentionFamily;

const WARPS: &str =
    "the CUDA kernels, without roles: a warp owns 16 queries, and its products are mma.sync.m16n8k16";

const QUERIES: [usize; 3] = [FEW_QUERIES, 64, 128];
const KEYS: [usize; 2] = [64, 128];

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_M], WARPS, queries;
    [TILE_N], WARPS, keys;
    [ORDER, ROLES], "the CUDA kernels: so the kernel is built", order;
};

fn computes(situation: &Situation) -> bool {
    by_mma_sync(situation.schedule, situation.arch())
}

fn queries(situation: &Situation) -> Option<String> {
    (computes(situation) && !QUERIES.contains(&situation.schedule.tile.m)).then(|| {
        format!(
            "unified attention on {} takes M of {}",
            situation.device.arch,
            listed(&QUERIES)
        )
    })
}

fn keys(situation: &Situation) -> Option<String> {
    (computes(situation) && !KEYS.contains(&situation.schedule.tile.n)).then(|| {
        format!(
            "unified attention on {} takes N of {}",
            situation.device.arch,
            listed(&KEYS)
        )
    })
}

fn order(situation: &Situation) -> Option<String> {
    (computes(situation) && situation.schedule.order != Order::PerTile).then(|| {
        format!(
            "a block of unified attention on {} computes one tile",
            situation.device.arch
        )
    })
}
