//! sm_90a: `wgmma` on fp16, NVFP4 dequantised on the way; narrow tiles, and attention in which everyone does everything,
//! by `mma.sync`.

use super::lever::Lever;
use super::{Rule, Situation};
use crate::resources::{accumulators, by_mma_sync, is_narrow, weights};
use crate::{Arithmetic, Roles};

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

/// Rows of an `mma.sync`, all of one warp; attention's rows go by four warps.
const WARP_ROWS: usize = 16;
/// Warps by which attention goes that everyone multiplies.
const WARPS: usize = 4;
/// The most rows of such a tile: 16 warps.
const MOST_ROWS: usize = 256;
const MMA_SYNC: &str = "PTX ISA, mma.sync.m16n8k16; the CUDA kernels: a warp owns 16 queries";

pub(super) const ATTENTION: &[Rule] = &[
    Rule {
        word: Lever::TileM,
        levers: &[Lever::TileM],
        source: MMA_SYNC,
        broken: queries_of_warps,
    },
    Rule {
        word: Lever::TileN,
        levers: &[Lever::TileN],
        source: MMA_SYNC,
        broken: keys_of_warps,
    },
    Rule {
        word: Lever::Arithmetic,
        levers: &[Lever::Arithmetic, Lever::Roles],
        source: "the CUDA kernels: on sm_90a only wgmma multiplies e4m3",
        broken: e4m3,
    },
    Rule {
        word: Lever::SplitK,
        levers: &[Lever::SplitK, Lever::Cluster],
        source: "the CUDA kernels: blocks that share the keys of a tile are a cluster, and merge over its shared memory",
        broken: parts,
    },
    Rule {
        word: Lever::SplitK,
        levers: &[Lever::SplitK, Lever::Roles],
        source: "the CUDA kernels: only those with roles merge over a cluster",
        broken: merging,
    },
];

fn rows(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    let by_warps = match situation.attention() {
        None => is_narrow(schedule),
        Some(_) => by_mma_sync(schedule, situation.arch()),
    };
    (!by_warps && !schedule.tile.m.is_multiple_of(ROWS))
        .then(|| format!("wgmma on sm_90a needs M in multiples of {ROWS}"))
}

fn columns(situation: &Situation) -> Option<String> {
    if is_warps_attention(situation) {
        return None;
    }
    let n = situation.schedule.tile.n;
    // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
    let step = situation
        .attention()
        .map_or(8, |attention| situation.summed_at_once(attention));
    (!n.is_multiple_of(step) || n > 256)
        .then(|| format!("wgmma on sm_90a needs N from {step} to 256 in steps of {step}"))
}

fn depth(situation: &Situation) -> Option<String> {
    let step = situation
        .attention()
        .map_or(16, |attention| situation.summed_at_once(attention));
    let unit = if is_warps_attention(situation) {
        "mma.sync"
    } else {
        "wgmma"
    };
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

fn registers_of_a_block(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.registers.get();
    let needed = accumulators(situation.schedule, situation.problem);
    (needed as f64 >= limit).then(|| {
        format!("{needed} fp32 accumulators leave nothing of the {limit} registers of a multiprocessor")
    })
}

/// Whether everyone multiplies, by `mma.sync`.
fn is_warps_attention(situation: &Situation) -> bool {
    situation.attention().is_some() && by_mma_sync(situation.schedule, situation.arch())
}

fn queries_of_warps(situation: &Situation) -> Option<String> {
    let m = situation.schedule.tile.m;
    let rows = WARP_ROWS * WARPS;
    (is_warps_attention(situation) && (!m.is_multiple_of(rows) || m > MOST_ROWS))
        .then(|| format!("unified attention on sm_90a takes M from {rows} to {MOST_ROWS} in steps of {rows}"))
}

fn keys_of_warps(situation: &Situation) -> Option<String> {
    let n = situation.schedule.tile.n;
    (is_warps_attention(situation) && (!n.is_multiple_of(16) || n > 256))
        .then(|| "unified attention on sm_90a takes N from 16 to 256 in steps of 16".to_owned())
}

fn e4m3(situation: &Situation) -> Option<String> {
    situation.attention()?;
    let schedule = situation.schedule;
    (schedule.arithmetic == Arithmetic::Fp8 && schedule.roles == Roles::Unified)
        .then(|| "unified attention on sm_90a multiplies fp16, by mma.sync".to_owned())
}

fn parts(situation: &Situation) -> Option<String> {
    situation.attention()?;
    let (split, cluster) = (situation.schedule.split_k, situation.schedule.cluster);
    (split != cluster.n).then(|| {
        format!(
            "keys are split over the {} block{} of a cluster's row, one part each",
            cluster.n,
            if cluster.n == 1 { "" } else { "s" }
        )
    })
}

fn merging(situation: &Situation) -> Option<String> {
    situation.attention()?;
    let schedule = situation.schedule;
    (schedule.split_k > 1 && schedule.roles == Roles::Unified)
        .then(|| "unified attention on sm_90a does not split keys".to_owned())
}
