//! Tensor maps: descriptions of matrices for the copy engine.

pub use gauntlet_cuda::driver::{Element, Swizzle};

use super::Matrix;

/// A tensor map over elements that lie without gaps, fetched in boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The matrix that it describes; the address is known when it is encoded.
    pub matrix: Matrix,
    /// The group or sequence it belongs to.
    pub group: usize,
    /// Bytes from the matrix's begin to the first element.
    pub offset: u64,
    /// The type of its elements.
    pub element: Element,
    /// Elements along each dimension, the innermost first.
    pub sizes: Vec<u64>,
    /// Elements of a box, likewise.
    pub boxes: Vec<u32>,
    /// How a box's rows lie in shared memory.
    pub swizzle: Swizzle,
}

impl Map {
    /// A map of a matrix of bytes: columns and rows of the matrix and of a box.
    pub(crate) fn of_bytes(matrix: Matrix, group: usize, sizes: [u64; 2], boxes: [u32; 2]) -> Self {
        Self {
            matrix,
            group,
            offset: 0,
            element: Element::Byte,
            sizes: sizes.to_vec(),
            boxes: boxes.to_vec(),
            swizzle: Swizzle::None,
        }
    }
}
