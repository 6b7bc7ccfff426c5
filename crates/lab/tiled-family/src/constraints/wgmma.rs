//! `wgmma` of sm_90a.

use super::Situation;
use crate::TiledFamily;

/// The source of rules about shapes.
pub const SHAPE: &str = "PTX ISA, wgmma.mma_async: shape m64nNk16, N 8…256 in steps of 8";

/// The source of the rule about [`registers_of_a_thread`].
pub const REGISTERS: &str = "CUDA C++ Programming Guide, technical specifications: registers a thread; a warp group of \
                             128 threads holds 64 rows";

/// Rows of one instruction, all of one group of four warps.
pub const ROWS: usize = 64;

/// Sums of so many columns in the registers of a thread.
pub fn registers_of_a_thread<F: TiledFamily>(situation: &Situation<F>, columns: usize) -> Option<String> {
    let limit = situation.gpu()?.registers_thread.get();
    let needed = ROWS * columns / 128;
    (needed as f64 > limit).then(|| {
        format!("{needed} fp32 accumulators a thread are more than the {limit} registers it may have")
    })
}
