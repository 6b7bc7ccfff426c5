//! The NVFP4 tensor: packed values, block scales, one tensor scale.

use thiserror::Error;

/// Why bytes cannot be an NVFP4 tensor.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FormatError {}

/// A row-major `[rows, columns]` NVFP4 tensor, blocks of [`BLOCK`](crate::BLOCK) along each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Nvfp4Tensor {
    rows: usize,
    columns: usize,
    packed: Vec<u8>,
    scales: Vec<u8>,
    tensor_scale: f32,
}

impl Nvfp4Tensor {
    /// Builds a tensor from its parts. `packed` is `[rows, columns / 2]`, `scales` is `[rows, columns / 16]`.
    pub fn new(
        rows: usize,
        columns: usize,
        packed: Vec<u8>,
        scales: Vec<u8>,
        tensor_scale: f32,
    ) -> Result<Self, FormatError> {
        Ok(Self { rows, columns, packed, scales, tensor_scale })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of values in a row (K).
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// e2m1 codes two a byte, low nibble first, `[rows, columns / 2]`.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// e4m3 block scales, `[rows, columns / 16]`.
    pub fn scales(&self) -> &[u8] {
        &self.scales
    }

    /// The scale of the whole tensor; 1 where there is none.
    pub fn tensor_scale(&self) -> f32 {
        self.tensor_scale
    }
}
