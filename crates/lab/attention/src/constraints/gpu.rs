//! How attention computes on GPUs: what its words need of one another.

use gauntlet_problems::resources::{by_mma_sync, key_warps};
use gauntlet_problems::{Arithmetic, AttentionFormat, Epilogue, Exponential, Layout, Roles, Scores, Values};
use gauntlet_tiled_family::constraints::{
    ARITHMETIC, EPILOGUE, EXPONENTIAL, LAYOUT, ROLES, Rule, SCORES, SPLIT_K, TILE_M, VALUES,
};
use gauntlet_tiled_family::rules;

use super::{Situation, fused};
use crate::AttentionFamily;

pub(super) const RULES: &[Rule<AttentionFamily>] = rules! {
    [VALUES, SCORES],
        "definition of the word: a thread that multiplies on its own reads weights that others computed",
        scalar;
    [EXPONENTIAL, SCORES],
        "the CUDA kernels: a softmax in shared memory takes its exponentials from hardware",
        exponential;
    [ARITHMETIC], "definition of the word: e4m3 operands are multiplied as they are", format;
    [SCORES, SPLIT_K, TILE_M], PARTS, parts_in_registers;
    [EPILOGUE, SPLIT_K, TILE_M], PARTS, parts_stored;
};

const PARTS: &str =
    "the CUDA kernels, without roles: parts of a tile's keys are merged from registers to the output";

/// Requirements of kernels whose scores never leave the registers.
pub(super) const FUSED: &[Rule<AttentionFamily>] = rules! {
    [SCORES, ROLES], "the CUDA kernels: wgmma keeps scores where it computes them", fused_scores;
    [VALUES, ROLES], "the CUDA kernels: wgmma multiplies the values too", fused_values;
    [LAYOUT, ROLES],
        "PTX ISA, matrix descriptors of wgmma: rows of a tile 64 or 128 bytes wide are swizzled",
        fused_layout;
};

fn scalar(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    (schedule.values == Values::Scalar && schedule.scores == Scores::Registers)
        .then(|| "scalar products read weights from shared memory, and registers keep them".to_owned())
}

fn exponential(situation: &Situation) -> Option<String> {
    let schedule = situation.schedule;
    (schedule.exponential != Exponential::Hardware && schedule.scores != Scores::Registers)
        .then(|| "only a softmax in registers takes its exponentials otherwise than by hardware".to_owned())
}

fn format(situation: &Situation) -> Option<String> {
    let format = situation.sizes.format;
    (situation.schedule.arithmetic == Arithmetic::Fp8 && format != AttentionFormat::E4m3)
        .then(|| format!("operands in {format} cannot be multiplied as e4m3"))
}

/// Whether several warps, or several blocks, have parts of a tile's keys that are merged row by row.
fn has_parts(situation: &Situation) -> bool {
    let schedule = situation.schedule;
    schedule.roles == Roles::Unified
        && by_mma_sync(schedule, situation.arch())
        && (schedule.split_k > 1 || key_warps(schedule) > 1)
}

fn parts_in_registers(situation: &Situation) -> Option<String> {
    (has_parts(situation) && situation.schedule.scores != Scores::Registers)
        .then(|| "parts of a tile's keys have their scores in registers".to_owned())
}

fn parts_stored(situation: &Situation) -> Option<String> {
    (has_parts(situation) && situation.schedule.epilogue == Epilogue::Staged)
        .then(|| "parts of a tile's keys are merged into whole rows, which are stored directly".to_owned())
}

fn fused_scores(situation: &Situation) -> Option<String> {
    let unit = fused(situation)?;
    (situation.schedule.scores != Scores::Registers)
        .then(|| format!("kernels of {unit} keep scores out of shared memory"))
}

fn fused_values(situation: &Situation) -> Option<String> {
    let unit = fused(situation)?;
    (situation.schedule.values != Values::Matrix)
        .then(|| format!("kernels of {unit} multiply values on the matrix unit"))
}

fn fused_layout(situation: &Situation) -> Option<String> {
    let unit = fused(situation)?;
    (situation.schedule.layout != Layout::Swizzled)
        .then(|| format!("{unit} reads these rows swizzled from shared memory"))
}
