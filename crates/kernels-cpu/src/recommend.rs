//! Which schedule a grouped GEMM does well with, from its shapes.

use gauntlet_operations::{GemmShape, GroupedGemm};
use gauntlet_operations::{Lookup, Order, Schedule, Setup};

use crate::simd::{Blocks, Instructions, Operand};

/// Tokens of a tile, blocks of weights from wide to narrow, and depth, for products by dots and by the tile unit. Widths are
/// multiples of the register blocks'. Dots take weights as rows, which are packed with fewer instructions and bytes than columns.
const DOTS: (usize, [usize; 3], usize) = (128, [64, 32, 16], 2560);
const TILE_UNIT: (usize, [usize; 3], usize) = (128, [128, 64, 32], 1024);

/// Weights of a tile from many to few, and values of packed tokens that stay in the first-level cache, where all tokens are one
/// panel and weights are multiplied straight from their codes. Rows of codes that are read whole are read fastest.
const UNPACKED: ([usize; 3], usize) = ([128, 64, 32], 1 << 14);

/// The chunk of any instruction set divides it.
const CHUNKS: usize = 256;

/// Tiles that each thread should have, so that the last one to finish keeps the others waiting but shortly.
const TILES_A_THREAD: usize = 8;

/// See [`Engine::recommend`](crate::Engine::recommend).
pub(crate) fn schedule(gemm: &GroupedGemm, instructions: Instructions, threads: usize) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0).max(1);
    let (tokens, widths, depth) = match instructions.blocks(most) {
        Blocks::Tiles(_) => {
            let (tokens, widths, depth) = TILE_UNIT;
            return Schedule {
                tile: [tokens, narrow(gemm, tokens, widths, threads), depth].into(),
                ..dynamic()
            };
        }
        Blocks::Dots(dots) if most <= dots.width(Operand::Columns) => {
            (most, UNPACKED.0, (UNPACKED.1 / most).max(CHUNKS))
        }
        Blocks::Dots(_) => DOTS,
    };
    // As few parts of K as may be, and all of a size.
    let deepest = gemm.groups.iter().map(|shape| shape.k).max().unwrap_or(0).max(1);
    let even = deepest.div_ceil(deepest.div_ceil(depth)).next_multiple_of(CHUNKS);
    Schedule {
        swap_ab: true,
        tile: [narrow(gemm, tokens, widths, threads), tokens, even].into(),
        ..dynamic()
    }
}

/// The widest blocks of weights that leave no thread without work.
fn narrow(gemm: &GroupedGemm, tokens: usize, widths: [usize; 3], threads: usize) -> usize {
    let enough = |width: &usize| {
        let blocks = |shape: &GemmShape| shape.m.div_ceil(tokens) * shape.n.div_ceil(*width);
        gemm.groups.iter().map(blocks).sum::<usize>() >= TILES_A_THREAD * threads
    };
    widths.into_iter().find(enough).unwrap_or(widths[2])
}

/// What all good schedules have in common.
fn dynamic() -> Schedule {
    Schedule {
        order: Order::Dynamic,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..Schedule::baseline()
    }
}
