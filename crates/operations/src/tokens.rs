//! The tokens of a grouped GEMM, in each of their number formats.

use gauntlet_formats::{BLOCK, Nvfp4Tensor};
use half::{bf16, f16};

use crate::TokenFormat;

/// Tokens, `[m, k]`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum Tokens {
    /// NVFP4.
    Nvfp4(Nvfp4Tensor),
    /// 16-bit floats.
    Half(HalfTensor),
}

/// A row-major matrix of 16-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfTensor {
    /// Whether elements are bf16; otherwise they are f16.
    pub is_bf16: bool,
    /// Rows.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
    /// Little-endian elements, `[rows, columns]`.
    pub bytes: Vec<u8>,
}

impl HalfTensor {
    /// Rounds values to nearest, ties to even.
    pub fn round(is_bf16: bool, rows: usize, columns: usize, values: &[f32]) -> Self {
        let element = |value: &f32| match is_bf16 {
            true => bf16::from_f32(*value).to_le_bytes(),
            false => f16::from_f32(*value).to_le_bytes(),
        };
        Self {
            is_bf16,
            rows,
            columns,
            bytes: values.iter().flat_map(element).collect(),
        }
    }

    /// Element `index`, exact.
    ///
    /// # Panics
    /// When `index` is out of bounds.
    pub fn get(&self, index: usize) -> f32 {
        let pair = [self.bytes[2 * index], self.bytes[2 * index + 1]];
        match self.is_bf16 {
            true => bf16::from_le_bytes(pair).to_f32(),
            false => f16::from_le_bytes(pair).to_f32(),
        }
    }
}

impl From<Nvfp4Tensor> for Tokens {
    fn from(tensor: Nvfp4Tensor) -> Self {
        Self::Nvfp4(tensor)
    }
}

impl Tokens {
    /// Rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Nvfp4(tensor) => tensor.rows(),
            Self::Half(tensor) => tensor.rows,
        }
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        match self {
            Self::Nvfp4(tensor) => tensor.columns(),
            Self::Half(tensor) => tensor.columns,
        }
    }

    /// The number format.
    pub fn format(&self) -> TokenFormat {
        match self {
            Self::Nvfp4(_) => TokenFormat::Nvfp4,
            Self::Half(HalfTensor { is_bf16: false, .. }) => TokenFormat::F16,
            Self::Half(HalfTensor { is_bf16: true, .. }) => TokenFormat::Bf16,
        }
    }

    /// The tensor, if the format is NVFP4.
    pub fn nvfp4(&self) -> Option<&Nvfp4Tensor> {
        match self {
            Self::Nvfp4(tensor) => Some(tensor),
            Self::Half(_) => None,
        }
    }

    /// The factor of all values that is not part of their blocks: 1 for formats without a tensor scale.
    pub fn tensor_scale(&self) -> f32 {
        self.nvfp4().map_or(1.0, Nvfp4Tensor::tensor_scale)
    }

    /// The packed values of all rows.
    pub fn values(&self) -> &[u8] {
        match self {
            Self::Nvfp4(tensor) => tensor.packed(),
            Self::Half(tensor) => &tensor.bytes,
        }
    }

    /// The block scales of all rows; empty for formats without them.
    pub fn scales(&self) -> &[u8] {
        self.nvfp4().map_or(&[], Nvfp4Tensor::scales)
    }

    /// All values, row by row, exact.
    pub fn dequantise_scaled(&self) -> Vec<f64> {
        match self {
            Self::Nvfp4(tensor) => tensor.dequantise_scaled(),
            Self::Half(tensor) => (0..tensor.rows * tensor.columns)
                .map(|index| f64::from(tensor.get(index)))
                .collect(),
        }
    }

    /// The values of some blocks of 16 of a row, exact.
    pub fn dequantise_blocks_scaled(&self, row: usize, blocks: std::ops::Range<usize>, values: &mut [f64]) {
        match self {
            Self::Nvfp4(tensor) => tensor.dequantise_blocks_scaled(row, blocks, values),
            Self::Half(tensor) => {
                let first = row * tensor.columns + blocks.start * BLOCK;
                for (offset, value) in values.iter_mut().enumerate() {
                    *value = f64::from(tensor.get(first + offset));
                }
            }
        }
    }
}
