//! sm_100a: `tcgen05.mma`, accumulators in tensor memory.

use gauntlet_tiles::constraints::blackwell::{SHAPE, columns};
use gauntlet_tiles::constraints::gpu::depth;
use gauntlet_tiles::constraints::{Rule, SWAP_AB, TILE_K, TILE_M, TILE_N};
use gauntlet_tiles::rules;

use super::{Situation, summed_at_once};
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
    [TILE_N], SHAPE, |s| columns(s, "tcgen05.mma", summed_at_once(s));
    [TILE_K], SHAPE, |s| depth(s, "tcgen05.mma", summed_at_once(s));
};

fn rows(situation: &Situation) -> Option<String> {
    let m = situation.schedule.tile.m;
    let (allowed, needed) = if situation.paired() {
        (m.is_multiple_of(128), "M = 128 or 256 for a pair of CTAs")
    } else {
        (m == 64 || m.is_multiple_of(128), "M = 64 or 128 for one CTA")
    };
    (!allowed).then(|| format!("tcgen05.mma on sm_100a needs {needed}"))
}
