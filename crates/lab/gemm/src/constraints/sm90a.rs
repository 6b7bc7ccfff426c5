//! sm_90a: `wgmma` on fp16, NVFP4 dequantised on the way, and narrow tiles by `mma.sync`.

use gauntlet_problems::resources::{is_narrow, weights};
use gauntlet_tiled_family::constraints::gpu::{REGISTERS, depth, registers};
use gauntlet_tiled_family::constraints::{Rule, SWAP_AB, TILE_K, TILE_M, TILE_N, wgmma};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::GemmFamily;

/// Products with at most 16 tokens wait for the weights, not for the matrix unit: the rows of one warp suffice.
const ROW_SHAPES: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16; with weights as rows and at most 16 tokens also \
                          mma.sync.m16n8k16";

pub(super) const RULES: &[Rule<GemmFamily>] = rules! {
    [TILE_M, SWAP_AB], ROW_SHAPES, rows;
    [TILE_N], wgmma::SHAPE, columns;
    [TILE_K], wgmma::SHAPE, |s| depth(s, "wgmma", 16);
    [TILE_N], wgmma::REGISTERS, registers_of_a_thread;
    [TILE_M, TILE_N], REGISTERS, registers;
};

fn rows(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    (!is_narrow(schedule) && !schedule.tile.m.is_multiple_of(wgmma::ROWS))
        .then(|| format!("wgmma on sm_90a needs M in multiples of {}", wgmma::ROWS))
}

fn columns(situation: &Situation) -> Option<String> {
    let n = situation.schedule.tile.n;
    (!n.is_multiple_of(8) || n > 256)
        .then(|| "wgmma on sm_90a needs N from 8 to 256 in steps of 8".to_owned())
}

/// With swap-AB the rows of two weights are those of different warp groups.
fn registers_of_a_thread(situation: &Situation) -> Option<String> {
    let matrices = if situation.schedule.swap_ab {
        1
    } else {
        weights(situation.sizes)
    };
    wgmma::registers_of_a_thread(situation, situation.schedule.tile.n * matrices)
}
