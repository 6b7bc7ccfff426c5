//! What the CUDA kernels that need nothing of Hopper take: the narrow kernel for few tokens, and the unified kernel. On sm_100a
//! they compute GEMMs of 16-bit tokens. On sm_80 and sm_89 they compute every GEMM, and the rules there are wider.

use gauntlet_problems::resources::{is_narrow, weights};
use gauntlet_problems::{Epilogue, Order, Roles};
use gauntlet_tiled_family::constraints::{
    EPILOGUE, ORDER, ROLES, Rule, SPLIT_K, STAGES, SWAP_AB, TILE_K, TILE_M, TILE_N,
};
use gauntlet_tiled_family::rules;

use super::Situation;
use crate::GemmFamily;

const BUILT: &str = "the CUDA kernels: so the kernel is built";
const RINGS: &str =
    "the CUDA kernels: a ring of chunks 128 deep, one of which a warp of the narrow kernel has for itself";

/// Weight rows of a block, of both weights in the dual form.
const UNIFIED_ROWS: usize = 128;
const NARROW_ROWS: usize = 32;
/// Most tokens of a tile of the unified kernel.
const MAX_TOKENS: usize = 128;
/// Values of the depth that are copied at a time.
const CHUNK: usize = 128;
/// Most warps of a block of the narrow kernel, each of which takes a chunk of a step.
const MAX_WARPS: usize = 16;
/// Most parts of a split tile.
const MAX_PARTS: usize = 64;

pub(super) const RULES: &[Rule<GemmFamily>] = rules! {
    [SWAP_AB], "the CUDA kernels: the one with tokens as rows multiplies by wgmma, which sm_90a alone has", swap;
    [ROLES], "the CUDA kernels: those with roles multiply by wgmma, which sm_90a alone has", roles;
    [TILE_M, TILE_N], "the CUDA kernels: weights are the rows, 32 of the narrow kernel and 128 of the unified one", rows;
    [TILE_N], "PTX ISA, mma.sync.m16n8k16: tokens are the columns; a thread of the unified kernel has at most 128 sums", columns;
    [TILE_K], RINGS, depth;
    [STAGES], RINGS, stages;
    [EPILOGUE], BUILT, epilogue;
    [ORDER], BUILT, order;
    [SPLIT_K], "the CUDA kernels: the last of at most 64 parts adds up all of them; warps of the narrow kernel share out the depth", parts;
};

/// The name of the kernel in messages.
fn name(situation: &Situation) -> &'static str {
    if is_narrow(situation.schedule) {
        "the narrow kernel"
    } else {
        "the unified kernel"
    }
}

fn swap(situation: &Situation) -> Option<String> {
    (!situation.schedule.swap_ab).then(|| {
        format!(
            "{} tokens are multiplied on {} by kernels with weights as the rows",
            situation.sizes.tokens, situation.device.arch
        )
    })
}

fn roles(situation: &Situation) -> Option<String> {
    (situation.schedule.roles == Roles::Specialised).then(|| {
        format!(
            "{} tokens have no kernel with roles on {}; such kernels need a Hopper GPU",
            situation.sizes.tokens, situation.device.arch
        )
    })
}

fn rows(situation: &Situation) -> Option<String> {
    let of_both = if is_narrow(situation.schedule) {
        NARROW_ROWS
    } else {
        UNIFIED_ROWS
    };
    let needed = of_both / weights(situation.sizes);
    (situation.schedule.tile.m != needed).then(|| {
        format!(
            "a block of {} holds {of_both} weight rows, those of all weights together, so M is {needed}",
            name(situation)
        )
    })
}

fn columns(situation: &Situation) -> Option<String> {
    let n = situation.schedule.tile.n;
    (n == 0 || !n.is_multiple_of(8) || n > MAX_TOKENS)
        .then(|| format!("{} takes 8 to {MAX_TOKENS} tokens in steps of 8", name(situation)))
}

fn depth(situation: &Situation) -> Option<String> {
    let k = situation.schedule.tile.k;
    if is_narrow(situation.schedule) {
        let allowed = k.is_multiple_of(CHUNK) && (CHUNK..=MAX_WARPS * CHUNK).contains(&k);
        return (!allowed).then(|| {
            format!("a step of the narrow kernel is {CHUNK} deep for each of its warps, which are at most {MAX_WARPS}")
        });
    }
    (k != CHUNK).then(|| format!("a stage of the unified kernel is {CHUNK} values deep"))
}

fn stages(situation: &Situation) -> Option<String> {
    (!is_narrow(situation.schedule) && situation.schedule.stages < 2)
        .then(|| "a ring of the unified kernel holds 2 stages or more".to_owned())
}

fn epilogue(situation: &Situation) -> Option<String> {
    (situation.schedule.epilogue == Epilogue::Staged)
        .then(|| format!("{} has no staged epilogue", name(situation)))
}

fn order(situation: &Situation) -> Option<String> {
    let order = situation.schedule.order;
    if is_narrow(situation.schedule) {
        return (order != Order::PerTile).then(|| "the narrow kernel has a block for each tile".to_owned());
    }
    (order == Order::Dynamic)
        .then(|| "each block of the unified kernel has tiles of its own in a table".to_owned())
}

fn parts(situation: &Situation) -> Option<String> {
    let split = situation.schedule.split_k;
    if is_narrow(situation.schedule) {
        return (split > 1).then(|| "blocks of the narrow kernel do not split the depth".to_owned());
    }
    (split > MAX_PARTS).then(|| format!("the unified kernel splits a tile into at most {MAX_PARTS} parts"))
}
