//! Micro-benchmarks of the engine's own primitives, for calibrating a model of the kernels.
//!
//! Each figure is the cost of one primitive in one situation: where its operands lie and how long its runs are. All
//! threads measure at the same time, as they do in a kernel, so the figure includes contention for what they share
//! (memory, a core's execution units). No whole kernel is timed: the model predicts those from these figures.

mod attention;
mod bench;
mod epilogue;
mod hand_over;
mod memory;
mod multiply;
mod pack;
mod setup;

use gauntlet_nvfp4::FormatError;
use gauntlet_problems::TokenFormat;
use thiserror::Error;

use crate::error::BuildError;
use crate::memory::OutOfMemory;
use crate::pool::Pool;
use crate::simd::Instructions;

use bench::Bench;

/// The measured cost, or rate, of one primitive of the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationFigure {
    /// The primitive and its situation, such as `multiply.step`.
    pub name: String,
    /// The unit of the value, such as `ns/value`.
    pub unit: String,
    /// The median over the samples.
    pub value: f64,
}

/// Why a figure could not be measured.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CalibrationError {
    /// Its operands do not fit into memory.
    #[error("calibrating needs up to 1 GiB of memory: {0}")]
    Memory(#[from] OutOfMemory),
    /// Its operands are malformed.
    #[error(transparent)]
    Operands(#[from] FormatError),
    /// The plan that it measures is refused.
    #[error(transparent)]
    Plan(#[from] BuildError),
}

/// Measures every primitive.
pub(crate) fn measure(
    pool: &Pool,
    instructions: Instructions,
    quick: bool,
) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let bench = Bench::new(pool, instructions, quick);
    let mut figures = Vec::new();
    for measure in [
        multiply::measure,
        pack::measure,
        epilogue::measure,
        hand_over::measure,
        setup::measure,
        attention::measure,
        memory::measure,
    ] {
        figures.extend(measure(&bench)?);
    }
    Ok(figures)
}

/// See [`Engine::inner_loop_rate`](crate::Engine::inner_loop_rate).
pub(crate) fn inner_loop_rate(
    pool: &Pool,
    instructions: Instructions,
    tokens: usize,
) -> Result<f64, CalibrationError> {
    let bench = Bench::new(pool, instructions, true);
    let seconds = multiply::inner_loop(&bench, instructions.blocks(tokens, TokenFormat::Nvfp4))?;
    Ok(pool.threads() as f64 / seconds)
}

/// A cost, given in seconds. Some costs are differences of two measurements; noise can make them negative, and they
/// count as zero then.
fn cost(name: impl Into<String>, per: &str, seconds: f64) -> CalibrationFigure {
    CalibrationFigure {
        name: name.into(),
        unit: format!("ns/{per}"),
        value: (seconds * 1e9).max(0.0),
    }
}
