//! sm_90a: `wgmma` on fp16, NVFP4 dequantised on the way; narrow tiles by `mma.sync`.

use super::lever::Lever;
use super::{Rule, Situation};
use crate::resources::{accumulators, is_narrow, weights};

const SHAPE: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16, N 8…256 in steps of 8";
const ROWS: usize = 64;
/// Products of so few tokens wait for the weights, not for the matrix unit, and need no more rows than one warp's.
const ROW_SHAPES: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16; with weights as rows and at most 16 tokens also \
                          mma.sync.m16n8k16";

pub(super) const RULES: &[Rule] = &[
    Rule {
        word: Lever::TileM,
        levers: &[Lever::TileM, Lever::SwapAb],
        source: ROW_SHAPES,
        broken: rows,
    },
    Rule {
        word: Lever::TileN,
        levers: &[Lever::TileN],
        source: SHAPE,
        broken: columns,
    },
    Rule {
        word: Lever::TileK,
        levers: &[Lever::TileK],
        source: SHAPE,
        broken: depth,
    },
    Rule {
        word: Lever::TileN,
        levers: &[Lever::TileN],
        source: "CUDA C++ Programming Guide, technical specifications: registers a thread; a warp group of 128 \
                 threads holds 64 rows",
        broken: registers_of_a_thread,
    },
    Rule {
        word: Lever::TileM,
        levers: &[Lever::TileM, Lever::TileN],
        source: "CUDA C++ Programming Guide, technical specifications: registers of a multiprocessor",
        broken: registers_of_a_block,
    },
];

fn rows(situation: &Situation) -> Option<String> {
    let narrow = situation.gemm().is_some() && is_narrow(situation.schedule);
    (!narrow && !situation.schedule.tile.m.is_multiple_of(ROWS))
        .then(|| format!("wgmma on sm_90a needs M in multiples of {ROWS}"))
}

fn columns(situation: &Situation) -> Option<String> {
    let n = situation.schedule.tile.n;
    // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
    let step = situation
        .attention()
        .map_or(8, |attention| 32 / attention.format.bytes());
    (!n.is_multiple_of(step) || n > 256)
        .then(|| format!("wgmma on sm_90a needs N from {step} to 256 in steps of {step}"))
}

fn depth(situation: &Situation) -> Option<String> {
    let step = situation
        .attention()
        .map_or(16, |attention| 32 / attention.format.bytes());
    (!situation.schedule.tile.k.is_multiple_of(step))
        .then(|| format!("wgmma on sm_90a sums {step} products at a time"))
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

fn registers_of_a_block(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.registers.get();
    let needed = accumulators(situation.schedule, situation.problem);
    (needed as f64 >= limit).then(|| {
        format!("{needed} fp32 accumulators leave nothing of the {limit} registers of a multiprocessor")
    })
}
