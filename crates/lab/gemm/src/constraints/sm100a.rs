//! sm_100a: `tcgen05.mma`, NVFP4 as it is (`mxf4nvf4`), accumulators in tensor memory.

use gauntlet_tiled_family::constraints::blackwell::{SHAPE, columns};
use gauntlet_tiled_family::constraints::gpu::depth;
use gauntlet_tiled_family::constraints::{Rule, SWAP_AB, TILE_K, TILE_M, TILE_N};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::GemmFamily;

pub(super) const RULES: &[Rule<GemmFamily>] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    [TILE_N], SHAPE, |s| columns(s, "mxf4nvf4", if s.paired() { 16 } else { 8 });
    [TILE_K], SHAPE, |s| depth(s, "mxf4nvf4", 64);
};

fn rows(situation: &Situation) -> Option<String> {
    let needed = if situation.paired() {
        "M = 128 or 256 for a pair of CTAs"
    } else {
        "M = 128 for one CTA"
    };
    (!situation.schedule.tile.m.is_multiple_of(128)).then(|| format!("mxf4nvf4 on sm_100a needs {needed}"))
}
