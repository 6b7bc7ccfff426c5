//! Recommends a schedule for a grouped GEMM from its shapes.

use gauntlet_problems::{Attention, GemmShape, GroupedGemm};
use gauntlet_problems::{Lookup, Order, Schedule, Setup, TokenFormat};

use crate::simd::{Blocks, Instructions, Operand};

/// Tokens per tile, candidate numbers of weights per tile from wide to narrow, and depth, for products by dots and by
/// the tile unit. Widths are multiples of the register block's. Dots take weights as rows, which need fewer
/// instructions and bytes to pack than columns.
const DOTS: (usize, [usize; 3], usize) = (128, [64, 32, 16], 2560);
const TILE_UNIT: (usize, [usize; 3], usize) = (128, [128, 64, 32], 1024);

/// Candidate numbers of weights per tile, and the number of packed token values that stay in the first-level cache, for
/// the case that all tokens form one panel and weights are multiplied straight from their codes. Reading whole rows of
/// codes is fastest.
const UNPACKED: ([usize; 3], usize) = ([128, 64, 32], 1 << 14);

/// The depth for dots of tokens without scales, whose panels take several times as many bytes as those of codes.
const FLOAT_DEPTH: usize = 1024;

/// As in [`UNPACKED`], for tokens without scales.
const UNPACKED_FLOATS: usize = 1 << 12;

/// A multiple of every instruction set's chunk.
const CHUNKS: usize = 256;

/// Tiles per thread, so that the last thread to finish delays the others only briefly.
const TILES_A_THREAD: usize = 8;

/// See [`Engine::recommend`](crate::Engine::recommend).
pub(crate) fn schedule(gemm: &GroupedGemm, instructions: Instructions, threads: usize) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0).max(1);
    let (tokens, widths, depth) = match instructions.blocks(most, gemm.tokens) {
        Blocks::Tiles(_) => {
            let (tokens, widths, depth) = TILE_UNIT;
            return Schedule {
                tile: [tokens, narrow(gemm, tokens, widths, threads), depth].into(),
                ..dynamic()
            };
        }
        Blocks::Dots(dots) if most <= dots.width(Operand::Columns) => {
            let values = if gemm.tokens == TokenFormat::Nvfp4 {
                UNPACKED.1
            } else {
                UNPACKED_FLOATS
            };
            (most, UNPACKED.0, (values / most).max(CHUNKS))
        }
        Blocks::Dots(_) if gemm.tokens == TokenFormat::Nvfp4 => DOTS,
        Blocks::Dots(_) => (DOTS.0, DOTS.1, FLOAT_DEPTH),
    };
    // As few steps along K as possible, all of the same size.
    let deepest = gemm.groups.iter().map(|shape| shape.k).max().unwrap_or(0).max(1);
    let even = deepest.div_ceil(deepest.div_ceil(depth)).next_multiple_of(CHUNKS);
    Schedule {
        swap_ab: true,
        tile: [narrow(gemm, tokens, widths, threads), tokens, even].into(),
        ..dynamic()
    }
}

/// The widest block of weights that leaves no thread without work.
fn narrow(gemm: &GroupedGemm, tokens: usize, widths: [usize; 3], threads: usize) -> usize {
    let enough = |width: &usize| {
        let blocks = |shape: &GemmShape| shape.m.div_ceil(tokens) * shape.n.div_ceil(*width);
        gemm.groups.iter().map(blocks).sum::<usize>() >= TILES_A_THREAD * threads
    };
    widths.into_iter().find(enough).unwrap_or(widths[2])
}

/// Queries and keys of attention's tiles; the keys are whole tiles of the tile unit.
const QUERIES: usize = 64;
const KEYS: usize = 64;

/// Rows of the widest register block of attention.
const ATTENTION_ROWS: usize = 8;

/// See [`Engine::recommend_attention`](crate::Engine::recommend_attention).
pub(crate) fn attention(attention: &Attention) -> Schedule {
    let most = attention.sequences.iter().map(|sequence| sequence.queries);
    let most = most.max().unwrap_or(0).max(1);
    let queries = most.next_multiple_of(ATTENTION_ROWS).min(QUERIES);
    Schedule {
        tile: [queries, KEYS, attention.head_size].into(),
        ..dynamic()
    }
}

/// The part that all recommended schedules share.
fn dynamic() -> Schedule {
    Schedule {
        order: Order::Dynamic,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..Schedule::baseline()
    }
}
