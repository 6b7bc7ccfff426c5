//! sm_90a: depths and registers of products by `wgmma`, and by `mma.sync` without roles.

use gauntlet_tiled_family::constraints::gpu::{REGISTERS, depth, registers};
use gauntlet_tiled_family::constraints::{Rule, TILE_K, TILE_M, TILE_N, wgmma};
use gauntlet_tiled_family::rules;

use super::{Situation, fused, summed_at_once};
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [TILE_K], wgmma::SHAPE, |s| depth(s, fused(s).unwrap_or("mma.sync"), summed_at_once(s));
    [TILE_N], wgmma::REGISTERS, registers_of_a_thread;
    [TILE_M, TILE_N], REGISTERS, registers;
};

/// Scores and sums of the values.
fn registers_of_a_thread(situation: &Situation) -> Option<String> {
    let tile = situation.schedule.tile;
    wgmma::registers_of_a_thread(situation, tile.n + tile.k)
}
