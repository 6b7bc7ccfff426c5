//! `mma.sync` on 16-bit operands in registers.

use super::Situation;
use crate::TiledFamily;

/// The source of rules about shapes.
pub const SHAPE: &str = "PTX ISA, mma.sync.m16n8k16 for 16-bit operands";

/// Rows of a tile.
pub fn rows<F: TiledFamily>(situation: &Situation<F>) -> Option<String> {
    (!situation.schedule.tile.m.is_multiple_of(16)).then(|| {
        format!(
            "mma.sync on {} works on 16 rows, and a tile is made of whole ones",
            situation.device.arch
        )
    })
}

/// Columns of a tile, in steps of `step` of what it consists `of`.
pub fn columns<F: TiledFamily>(situation: &Situation<F>, step: usize, of: &str) -> Option<String> {
    (!situation.schedule.tile.n.is_multiple_of(step)).then(|| {
        format!(
            "mma.sync on {} works on {step} {of}, and a tile is made of whole ones",
            situation.device.arch
        )
    })
}
