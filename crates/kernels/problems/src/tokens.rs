//! The tokens of a grouped GEMM, in each of their number formats.

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use half::{bf16, f16};

use crate::{OutputFormat, TokenFormat};

/// Tokens, `[m, k]`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum Tokens {
    /// NVFP4.
    Nvfp4(Nvfp4Tensor),
    /// Floats without scales.
    Floats(FloatTensor),
}

/// A row-major matrix of floats without scales.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatTensor {
    /// The type of the elements.
    pub format: OutputFormat,
    /// Rows.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
    /// Little-endian elements, `[rows, columns]`.
    pub bytes: Vec<u8>,
}

impl FloatTensor {
    /// Rounds values to nearest, ties to even.
    pub fn round(format: OutputFormat, rows: usize, columns: usize, values: &[f32]) -> Self {
        let bytes = match format {
            OutputFormat::F16 => values
                .iter()
                .flat_map(|&value| f16::from_f32(value).to_le_bytes())
                .collect(),
            OutputFormat::Bf16 => values
                .iter()
                .flat_map(|&value| bf16::from_f32(value).to_le_bytes())
                .collect(),
            OutputFormat::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        Self {
            format,
            rows,
            columns,
            bytes,
        }
    }

    /// Element `index`, exact.
    ///
    /// # Panics
    /// When `index` is out of bounds.
    pub fn get(&self, index: usize) -> f32 {
        self.format.decode(&self.bytes, index)
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
            Self::Floats(tensor) => tensor.rows,
        }
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        match self {
            Self::Nvfp4(tensor) => tensor.columns(),
            Self::Floats(tensor) => tensor.columns,
        }
    }

    /// The number format.
    pub fn format(&self) -> TokenFormat {
        match self {
            Self::Nvfp4(_) => TokenFormat::Nvfp4,
            Self::Floats(tensor) => tensor.format.into(),
        }
    }

    /// The tensor, if the format is NVFP4.
    pub fn nvfp4(&self) -> Option<&Nvfp4Tensor> {
        match self {
            Self::Nvfp4(tensor) => Some(tensor),
            Self::Floats(_) => None,
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
            Self::Floats(tensor) => &tensor.bytes,
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
            Self::Floats(tensor) => (0..tensor.rows * tensor.columns)
                .map(|index| f64::from(tensor.get(index)))
                .collect(),
        }
    }

    /// The values of some blocks of 16 of a row, exact.
    pub fn dequantise_blocks_scaled(&self, row: usize, blocks: std::ops::Range<usize>, values: &mut [f64]) {
        match self {
            Self::Nvfp4(tensor) => tensor.dequantise_blocks_scaled(row, blocks, values),
            Self::Floats(tensor) => {
                let first = row * tensor.columns + blocks.start * BLOCK;
                for (offset, value) in values.iter_mut().enumerate() {
                    *value = f64::from(tensor.get(first + offset));
                }
            }
        }
    }
}
