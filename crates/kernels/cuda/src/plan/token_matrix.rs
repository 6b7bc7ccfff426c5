//! 16-bit tokens that a kernel copies as the caller has them, by tensor maps that are part of the launch's parameter.

use super::{Element, Map, Matrix, Swizzle};

/// Values of a box's row: 128 bytes, the widest swizzle.
const BOX_COLUMNS: u32 = 64;
/// Maps of one matrix: a box of each has twice the tokens of the one before, from 8 to 256, so a tile of any width is made of
/// few boxes.
const HEIGHTS: u32 = 6;
/// Tokens of the lowest box.
const MIN_ROWS: u32 = 8;

/// The tokens of all groups, one after another: 16-bit floats `[rows, columns]` without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenMatrix {
    /// The address of the first value.
    pub address: u64,
    /// Values of a token.
    pub columns: u64,
    /// Tokens.
    pub rows: u64,
}

impl TokenMatrix {
    /// Its tensor maps, by the height of their boxes. Boxes bring zeros for values beyond a row's last, and for rows beyond the
    /// last token.
    pub fn maps(&self) -> Vec<Map> {
        let map = |height: u32| Map {
            matrix: Matrix::Tokens,
            group: 0,
            offset: 0,
            element: Element::Half,
            sizes: vec![self.columns, self.rows],
            boxes: vec![BOX_COLUMNS, MIN_ROWS << height],
            swizzle: Swizzle::Bytes128,
        };
        (0..HEIGHTS).map(map).collect()
    }
}
