//! NVFP4 grouped GEMM, plain and dual.
//!
//! The tokens (A) are packed once per call into panels that all tiles share; the weights (B, or B1 and B2) are
//! streamed, one stage of depth `tile.k` at a time. Without swap-AB, tokens are the rows of the register block and
//! weights its columns; with it, the other way round.

mod operands;
mod plan;
mod work;

pub use operands::{FloatRows, GemmOperands, PackedWeights, TokenRows, Weights};
pub(crate) use plan::GemmPlan;
