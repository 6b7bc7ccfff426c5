//! One operand's side of a tile: its rows, cut into panels.

use std::ops::Range;

use crate::simd::Operand;

/// One operand's side of a tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    /// Rows of the operand in a tile.
    pub extent: usize,
    /// Its side of the register block.
    pub operand: Operand,
    /// Rows of the operand in a panel.
    pub width: usize,
}

impl Side {
    /// Panels of `rows` rows.
    pub fn panels(&self, rows: usize) -> usize {
        rows.div_ceil(self.width)
    }

    /// The rows of block `block` out of `total`.
    pub fn block(&self, block: usize, total: usize) -> Range<usize> {
        block * self.extent..total.min((block + 1) * self.extent)
    }

    /// The rows of panel `panel` of a block's `rows`.
    pub fn panel(&self, rows: &Range<usize>, panel: usize) -> Range<usize> {
        let first = rows.end.min(rows.start + panel * self.width);
        first..rows.end.min(first + self.width)
    }
}
