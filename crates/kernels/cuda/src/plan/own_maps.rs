//! Operands whose tensor maps are part of a launch's parameter: calls may bring them at any address, and need no other memory on
//! the device for it.

use super::{Element, Map, Matrix, OPERANDS, Swizzle, TokenMatrix};

/// Maps begin at a multiple of this (CUDA driver API, CUtensorMap).
const ALIGNMENT: usize = 64;

/// The most bytes of a box's row in the widest swizzle (CUDA driver API, cuTensorMapEncodeTiled).
const SWIZZLED_BYTES: usize = 128;

/// Operands that a launch brings with their tensor maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MappedOperands {
    /// A GEMM's tokens of 16 bits.
    Tokens(TokenMatrix),
    /// Attention's Q, K and V.
    Heads(HeadMatrices),
}

impl MappedOperands {
    /// Their tensor maps, in the order in which they lie in the parameter.
    pub fn maps(&self) -> Vec<Map> {
        match self {
            Self::Tokens(tokens) => tokens.maps(),
            Self::Heads(heads) => heads.shape.maps(0, [0; OPERANDS]).into(),
        }
    }

    /// The address of a map's matrix.
    pub fn address(&self, map: &Map) -> u64 {
        match (self, map.matrix) {
            (Self::Tokens(tokens), _) => tokens.address,
            (Self::Heads(heads), Matrix::Key) => heads.addresses[1],
            (Self::Heads(heads), Matrix::Value) => heads.addresses[2],
            (Self::Heads(heads), _) => heads.addresses[0],
        }
    }

    /// The parameter of a launch with the encoded maps at its end.
    pub fn complete(parameter: &[u8], maps: &[u8]) -> Vec<u8> {
        let mut complete = parameter.to_vec();
        complete.resize(parameter.len().next_multiple_of(ALIGNMENT), 0);
        complete.extend_from_slice(maps);
        complete
    }
}

/// Q, K and V at addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeadMatrices {
    /// What they are.
    pub shape: HeadShape,
    /// Addresses of the first elements of Q, K and V.
    pub addresses: [u64; OPERANDS],
}

/// Q, K and V of one sequence: heads one after another, of each its positions, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeadShape {
    /// The type of the elements.
    pub element: Element,
    /// Elements of a head and position.
    pub head_size: usize,
    /// Positions of Q, K and V.
    pub positions: [usize; OPERANDS],
    /// Heads of Q, K and V.
    pub heads: [usize; OPERANDS],
    /// Positions of a box of Q, K and V.
    pub box_rows: [usize; OPERANDS],
}

impl HeadShape {
    /// The maps of the operands of a sequence of this number, which begin `offsets` bytes after those of the first sequence.
    pub fn maps(&self, sequence: usize, offsets: [u64; OPERANDS]) -> [Map; OPERANDS] {
        let row_bytes = self.head_size * self.element.bytes();
        let (box_bytes, swizzle) = match row_bytes {
            SWIZZLED_BYTES.. => (SWIZZLED_BYTES, Swizzle::Bytes128),
            _ => (row_bytes, Swizzle::Bytes64),
        };
        let map = |operand: usize| Map {
            matrix: [Matrix::Query, Matrix::Key, Matrix::Value][operand],
            group: sequence,
            offset: offsets[operand],
            element: self.element,
            sizes: [self.head_size, self.positions[operand], self.heads[operand]]
                .map(|size| size as u64)
                .to_vec(),
            boxes: vec![
                (box_bytes / self.element.bytes()) as u32,
                self.box_rows[operand] as u32,
                1,
            ],
            swizzle,
        };
        [0, 1, 2].map(map)
    }
}
