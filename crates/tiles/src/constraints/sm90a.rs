//! sm_90a: `wgmma` on fp16, NVFP4 dequantised on the way, and narrow tiles by `mma.sync`; what holds of attention too.

use super::lever::{SWAP_AB, TILE_K, TILE_M, TILE_N};
use super::mma_sync::registers;
use super::{Rule, Situation};
use crate::resources::{is_narrow, weights};

const SHAPE: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16, N 8…256 in steps of 8";
const ROWS: usize = 64;
/// Products with at most 16 tokens wait for the weights, not for the matrix unit: the rows of one warp suffice.
const ROW_SHAPES: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16; with weights as rows and at most 16 tokens also \
                          mma.sync.m16n8k16";

pub(super) const RULES: &[Rule] = rules! {
    [TILE_M, SWAP_AB], ROW_SHAPES, rows;
    [TILE_N], SHAPE, columns;
    [TILE_K], SHAPE, depth;
    [TILE_N],
        "CUDA C++ Programming Guide, technical specifications: registers a thread; a warp group of 128 \
                 threads holds 64 rows",
        registers_of_a_thread;
    [TILE_M, TILE_N],
        "CUDA C++ Programming Guide, technical specifications: registers of a multiprocessor",
        registers;
};

fn rows(situation: &Situation) -> Option<String> {
    situation.gemm()?;
    let schedule = situation.schedule;
    (!is_narrow(schedule) && !schedule.tile.m.is_multiple_of(ROWS))
        .then(|| format!("wgmma on sm_90a needs M in multiples of {ROWS}"))
}

fn columns(situation: &Situation) -> Option<String> {
    situation.gemm()?;
    let n = situation.schedule.tile.n;
    (!n.is_multiple_of(8) || n > 256)
        .then(|| "wgmma on sm_90a needs N from 8 to 256 in steps of 8".to_owned())
}

fn depth(situation: &Situation) -> Option<String> {
    let step = situation
        .attention()
        .map_or(16, |attention| situation.summed_at_once(attention));
    let unit = situation.fused().unwrap_or(if situation.gemm().is_some() {
        "wgmma"
    } else {
        "mma.sync"
    });
    (!situation.schedule.tile.k.is_multiple_of(step))
        .then(|| format!("{unit} on sm_90a sums {step} products at a time"))
}

fn registers_of_a_thread(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.registers_thread.get();
    let tile = situation.schedule.tile;
    // With swap-AB the rows of two weights are those of different warp groups.
    let columns = situation.gemm().map_or(tile.n + tile.k, |gemm| {
        tile.n
            * if situation.schedule.swap_ab {
                1
            } else {
                weights(gemm)
            }
    });
    let needed = ROWS * columns / 128;
    (needed as f64 > limit).then(|| {
        format!("{needed} fp32 accumulators a thread are more than the {limit} registers it may have")
    })
}
