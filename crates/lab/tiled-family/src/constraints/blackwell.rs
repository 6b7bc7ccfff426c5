//! `tcgen05`: tensor memory, and stores of whole rows.

use gauntlet_problems::Epilogue;
use gauntlet_problems::resources::tensor_memory_columns;

use super::{EPILOGUE, Rule, STAGES, Situation, TILE_M, TILE_N};
use crate::TiledFamily;

/// The source of rules about shapes.
pub const SHAPE: &str = "PTX ISA, tcgen05.mma: matrix shapes of .kind::mxf4nvf4";

/// Room in tensor memory, and rows of results.
pub const fn rules<F: TiledFamily>() -> &'static [Rule<F>] {
    rules! {
        [TILE_N, STAGES, TILE_M], "PTX ISA, tcgen05 tensor memory: 512 columns of 128 lanes", tensor_memory;
        [EPILOGUE], "CUDA driver API, cuTensorMapEncodeTiled: strides in multiples of 16 bytes", bulk_store;
    }
}

/// Columns of a tile, from `step` to 256, of the instruction `unit`.
pub fn columns<F: TiledFamily>(situation: &Situation<F>, unit: &str, step: usize) -> Option<String> {
    let n = situation.schedule.tile.n;
    (!n.is_multiple_of(step) || n > 256)
        .then(|| format!("{unit} on sm_100a needs N from {step} to 256 in steps of {step}"))
}

fn tensor_memory<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    let limit = situation.gpu()?.tensor_memory.as_ref()?.get();
    let needed = tensor_memory_columns(situation.schedule, situation.operation);
    (needed as f64 > limit).then(|| {
        format!("accumulators and the scales of all stages need {needed} columns of tensor memory, and there are {limit}")
    })
}

fn bulk_store<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
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
