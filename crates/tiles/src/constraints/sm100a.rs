//! sm_100a: `tcgen05.mma`, NVFP4 as it is (`mxf4nvf4`), accumulators in tensor memory.

use super::lever::{EPILOGUE, STAGES, SWAP_AB, TILE_K, TILE_M, TILE_N};
use super::{Rule, Situation};
use crate::Epilogue;
use crate::resources::tensor_memory_columns;

const SHAPE: &str = "PTX ISA, tcgen05.mma: matrix shapes of .kind::mxf4nvf4 and .kind::f16/f8f6f4";

pub(super) const RULES: &[Rule] = rules! {
    [TILE_M, SWAP_AB], SHAPE, rows;
    [TILE_N], SHAPE, columns;
    [TILE_K], SHAPE, depth;
    [TILE_N, STAGES, TILE_M], "PTX ISA, tcgen05 tensor memory: 512 columns of 128 lanes", tensor_memory;
    [EPILOGUE], "CUDA driver API, cuTensorMapEncodeTiled: strides in multiples of 16 bytes", bulk_store;
};

fn rows(situation: &Situation) -> Option<String> {
    let m = situation.schedule.tile.m;
    match (situation.attention(), situation.paired()) {
        (None, false) => {
            (!m.is_multiple_of(128)).then(|| "mxf4nvf4 on sm_100a needs M = 128 for one CTA".to_owned())
        }
        (None, true) => (!m.is_multiple_of(128))
            .then(|| "mxf4nvf4 on sm_100a needs M = 128 or 256 for a pair of CTAs".to_owned()),
        (Some(_), true) => (!m.is_multiple_of(128))
            .then(|| "tcgen05.mma on sm_100a needs M = 128 or 256 for a pair of CTAs".to_owned()),
        (Some(_), false) => (m != 64 && !m.is_multiple_of(128))
            .then(|| "tcgen05.mma on sm_100a needs M = 64 or 128 for one CTA".to_owned()),
    }
}

fn columns(situation: &Situation) -> Option<String> {
    let n = situation.schedule.tile.n;
    let (step, what) = match situation.attention() {
        // Keys are the columns of the scores and then the depth of P·V, which goes by 16 (fp16) or 32 (e4m3).
        Some(attention) => (situation.summed_at_once(attention), "tcgen05.mma"),
        None if situation.paired() => (16, "mxf4nvf4"),
        None => (8, "mxf4nvf4"),
    };
    (!n.is_multiple_of(step) || n > 256)
        .then(|| format!("{what} on sm_100a needs N from {step} to 256 in steps of {step}"))
}

fn depth(situation: &Situation) -> Option<String> {
    let (step, what) = match situation.attention() {
        Some(attention) => (situation.summed_at_once(attention), "tcgen05.mma"),
        None => (64, "mxf4nvf4"),
    };
    (!situation.schedule.tile.k.is_multiple_of(step))
        .then(|| format!("{what} on sm_100a sums {step} products at a time"))
}

fn tensor_memory(situation: &Situation) -> Option<String> {
    let limit = situation.gpu()?.tensor_memory.as_ref()?.get();
    let needed = tensor_memory_columns(situation.schedule, situation.operation);
    (needed as f64 > limit).then(|| {
        format!("accumulators and the scales of all stages need {needed} columns of tensor memory, and there are {limit}")
    })
}

fn bulk_store(situation: &Situation) -> Option<String> {
    if situation.schedule.epilogue != Epilogue::Staged {
        return None;
    }
    let element = situation.operation.output_format().bytes();
    let parts = situation.operation.parts();
    let odd = parts
        .iter()
        .find(|part| part.rows > 0 && !(part.columns * element).is_multiple_of(16))?;
    Some(format!(
        "a bulk store needs rows in multiples of 16 bytes, and one part has rows of {} B",
        odd.columns * element
    ))
}
