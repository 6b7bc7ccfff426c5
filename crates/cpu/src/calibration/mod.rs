//! Micro-benchmarks of the engine's own primitives: what the model of this executor is calibrated with.
//!
//! Each figure is the cost of one primitive in one situation — where its operands lie, how long its runs are — and all
//! threads take it at the same time, since that is how they work: what they share (memory, a core's units) is in the
//! figure. No kernel is built and no problem timed: what a kernel takes is left for the model to say.

mod attention;
mod bench;
mod epilogue;
mod hand_over;
mod memory;
mod multiply;
mod pack;
mod setup;

use gauntlet_executor::protocol::Parameter;
use gauntlet_formats::FormatError;
use thiserror::Error;

use crate::error::BuildError;
use crate::memory::OutOfMemory;
use crate::pool::Pool;
use crate::simd::Instructions;

use bench::Bench;

/// Why a figure could not be taken.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CalibrationError {
    /// Its operands do not fit into memory.
    #[error("calibrating needs up to 1 GiB of memory: {0}")]
    Memory(#[from] OutOfMemory),
    /// Its operands are no operands.
    #[error(transparent)]
    Operands(#[from] FormatError),
    /// A plan that is part of it is refused.
    #[error(transparent)]
    Plan(#[from] BuildError),
}

/// Measures everything there is a primitive for.
pub(crate) fn measure(
    pool: &Pool,
    instructions: Instructions,
    quick: bool,
) -> Result<Vec<Parameter>, CalibrationError> {
    let bench = Bench::new(pool, instructions, quick);
    let mut parameters = Vec::new();
    for measure in [
        multiply::measure,
        pack::measure,
        epilogue::measure,
        hand_over::measure,
        setup::measure,
        attention::measure,
        memory::measure,
    ] {
        parameters.extend(measure(&bench)?);
    }
    Ok(parameters)
}

/// See [`Engine::inner_loop_rate`](crate::Engine::inner_loop_rate).
pub(crate) fn inner_loop_rate(
    pool: &Pool,
    instructions: Instructions,
    tokens: usize,
) -> Result<f64, CalibrationError> {
    let bench = Bench::new(pool, instructions, true);
    let seconds = multiply::inner_loop(&bench, instructions.blocks(tokens))?;
    Ok(pool.threads() as f64 / seconds)
}

/// A cost of so many seconds; a difference of two costs that comes out negative is nothing.
fn cost(name: impl Into<String>, per: &str, seconds: f64) -> Parameter {
    Parameter {
        name: name.into(),
        unit: format!("ns/{per}"),
        value: (seconds * 1e9).max(0.0),
    }
}
