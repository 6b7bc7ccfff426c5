//! The choice on GPUs without Hopper's instructions, and on newer ones that run kernels without them. It follows from sizes alone;
//! nothing of it has been measured there.

use gauntlet_problems::{GroupedGemm, Lookup, Order, Schedule, Setup, Tile};

use super::{NARROW, rows};
use crate::plan::Target;

/// Tokens of the unified kernel's tiles, the fewest first: few variants, so that new token counts rarely have to wait for
/// the compiler.
const UNIFIED_WIDTHS: [usize; 3] = [32, 64, 128];
/// Bytes of a chunk, 128 deep, of a row of NVFP4 with its scales, and of 16 bits.
const PACKED_BYTES: usize = 64 + 8;
const HALF_BYTES: usize = 256;

/// Tiles are as wide as the largest group needs, because a weight is converted once for all tokens of a tile. Stages are as
/// many as fit, up to four: with them, copies of some hundred kilobytes are on their way in all multiprocessors together,
/// as many as memory of 300 to 2000 GB/s delivers in its latency of half a microsecond.
pub(super) fn automatic(gemm: &GroupedGemm, target: Target) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0);
    let schedule = |tile: Tile, stages| Schedule {
        tile,
        stages,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    if most <= NARROW {
        let n = if most <= NARROW / 2 { NARROW / 2 } else { NARROW };
        // Two stages of eight warps, each 128 deep, or of four where many tokens of 16 bits take their room.
        let of_a_token = if gemm.tokens.is_half() {
            HALF_BYTES
        } else {
            PACKED_BYTES
        };
        let slot = 32 * PACKED_BYTES + n * of_a_token;
        let warps = if 2 * 8 * slot <= target.block_shared_bytes {
            8
        } else {
            4
        };
        return schedule(
            Tile {
                m: rows(32, gemm.form),
                n,
                k: 128 * warps,
            },
            2,
        );
    }
    let n = UNIFIED_WIDTHS.into_iter().find(|width| most <= *width);
    let n = n.unwrap_or(UNIFIED_WIDTHS[UNIFIED_WIDTHS.len() - 1]);
    let stage = 128 * PACKED_BYTES + n * HALF_BYTES;
    Schedule {
        order: Order::Sorted,
        split_k: 4,
        ..schedule(
            Tile {
                m: rows(128, gemm.form),
                n,
                k: 128,
            },
            (target.block_shared_bytes / stage).clamp(2, 4),
        )
    }
}
