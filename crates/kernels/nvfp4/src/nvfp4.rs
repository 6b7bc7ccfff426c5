//! The NVFP4 tensor: packed values, block scales, one tensor scale.

use thiserror::Error;

use gauntlet_tensors::e4m3;

use crate::BLOCK;

/// Why data is not an NVFP4 tensor.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FormatError {
    /// A row does not end at the end of a block.
    #[error(
        "{columns} columns: one scale covers {BLOCK} values along a row, so the number must be a multiple of {BLOCK}; \
         pad the rows with zeros to {}", columns.next_multiple_of(BLOCK)
    )]
    Columns {
        /// Columns given.
        columns: usize,
    },
    /// The number of elements does not fit the sizes.
    #[error("{found} {what} for a tensor of {rows} × {columns}; it takes {expected}")]
    Length {
        /// The kind of elements that were counted.
        what: &'static str,
        /// Rows of the tensor.
        rows: usize,
        /// Columns of the tensor.
        columns: usize,
        /// Elements needed.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// More elements than can be counted.
    #[error("{rows} × {columns} elements are more than this machine can address; use smaller sizes")]
    TooLarge {
        /// Rows given.
        rows: usize,
        /// Columns given.
        columns: usize,
    },
    /// A block scale is NaN.
    #[error(
        "the scale of row {row}, block {block} (columns {} to {}) is {code:#04x}, which is NaN in e4m3; \
         scales must be numbers, at most 448", block * BLOCK, (block + 1) * BLOCK - 1
    )]
    NanScale {
        /// Row of the scale.
        row: usize,
        /// Block in the row.
        block: usize,
        /// The code found: 0x7F or 0xFF.
        code: u8,
    },
    /// The tensor scale is infinite or NaN.
    #[error("the tensor scale is {scale}; it must be finite, and 1 where there is none")]
    TensorScale {
        /// The scale given.
        scale: f32,
    },
    /// A value to be quantised is infinite or NaN.
    #[error("the value at row {row}, column {column} is {value}; only finite values can be quantised")]
    NonFinite {
        /// Row of the value.
        row: usize,
        /// Column of the value.
        column: usize,
        /// The value.
        value: f32,
    },
}

/// A row-major `[rows, columns]` NVFP4 tensor, blocks of [`BLOCK`] along each row.
///
/// Element `(r, c)` is `e2m1(r, c) × e4m3(r, c / 16) × tensor_scale`. Block scales and the tensor scale may be
/// negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Nvfp4Tensor {
    rows: usize,
    columns: usize,
    packed: Vec<u8>,
    scales: Vec<u8>,
    tensor_scale: f32,
}

impl Nvfp4Tensor {
    /// Builds a tensor from its parts. `packed` is `[rows, columns / 2]`, `scales` is `[rows, columns / 16]`,
    /// `tensor_scale` is 1 where there is none.
    ///
    /// # Errors
    /// When `columns` is not a multiple of 16, a length does not fit the sizes, a block scale is NaN, or the tensor
    /// scale is not finite.
    pub fn new(
        rows: usize,
        columns: usize,
        packed: Vec<u8>,
        scales: Vec<u8>,
        tensor_scale: f32,
    ) -> Result<Self, FormatError> {
        let elements = element_count(rows, columns)?;
        check_length(
            "bytes of packed values",
            rows,
            columns,
            elements / 2,
            packed.len(),
        )?;
        check_length("block scales", rows, columns, elements / BLOCK, scales.len())?;
        check_scales(columns / BLOCK, &scales)?;
        if !tensor_scale.is_finite() {
            return Err(FormatError::TensorScale { scale: tensor_scale });
        }
        Ok(Self {
            rows,
            columns,
            packed,
            scales,
            tensor_scale,
        })
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

    /// What no element's magnitude exceeds: the largest code, 6, times the largest block scale and the tensor scale.
    pub fn magnitude_bound(&self) -> f64 {
        // Magnitudes grow with their codes.
        let code = self.scales.iter().map(|code| code & 0x7F).max().unwrap_or(0);
        6.0 * f64::from(e4m3::decode(code)) * f64::from(self.tensor_scale).abs()
    }
}

/// The number of elements of a tensor with whole blocks in each row.
pub(crate) fn element_count(rows: usize, columns: usize) -> Result<usize, FormatError> {
    if !columns.is_multiple_of(BLOCK) {
        return Err(FormatError::Columns { columns });
    }
    rows.checked_mul(columns)
        .ok_or(FormatError::TooLarge { rows, columns })
}

pub(crate) fn check_length(
    what: &'static str,
    rows: usize,
    columns: usize,
    expected: usize,
    found: usize,
) -> Result<(), FormatError> {
    if expected == found {
        Ok(())
    } else {
        Err(FormatError::Length {
            what,
            rows,
            columns,
            expected,
            found,
        })
    }
}

/// The number of codes checked together: without an early exit after each, the loop is vectorised, and weights have
/// millions of codes.
const CODES: usize = 4096;

fn check_scales(blocks: usize, scales: &[u8]) -> Result<(), FormatError> {
    let has_nan = |codes: &[u8]| {
        codes
            .iter()
            .fold(false, |found, &code| found | e4m3::is_nan(code))
    };
    let suspects = scales
        .chunks(CODES)
        .position(has_nan)
        .map_or(&[][..], |piece| &scales[piece * CODES..]);
    match suspects.iter().position(|&code| e4m3::is_nan(code)) {
        None => Ok(()),
        Some(at) => {
            let at = scales.len() - suspects.len() + at;
            Err(FormatError::NanScale {
                row: at / blocks,
                block: at % blocks,
                code: scales[at],
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(rows: usize, columns: usize, scales: Vec<u8>) -> Result<Nvfp4Tensor, FormatError> {
        Nvfp4Tensor::new(rows, columns, vec![0; rows * columns / 2], scales, 1.0)
    }

    #[test]
    fn columns_must_be_whole_blocks() {
        let error = build(2, 24, vec![0; 2]).unwrap_err();
        assert_eq!(error, FormatError::Columns { columns: 24 });
        assert!(
            error.to_string().ends_with("pad the rows with zeros to 32"),
            "{error}"
        );
    }

    #[test]
    fn a_nan_scale_is_refused_with_its_place() {
        for code in [0x7F, 0xFF] {
            let mut scales = vec![0x38; 3 * 4];
            scales[2 * 4 + 1] = code;
            let error = build(3, 64, scales).unwrap_err();
            assert_eq!(
                error,
                FormatError::NanScale {
                    row: 2,
                    block: 1,
                    code
                }
            );
            assert!(
                error.to_string().contains("row 2, block 1 (columns 16 to 31)"),
                "{error}"
            );
        }
    }

    #[test]
    fn lengths_must_agree() {
        assert!(matches!(
            build(2, 32, vec![0; 3]),
            Err(FormatError::Length {
                expected: 4,
                found: 3,
                ..
            })
        ));
        let short = Nvfp4Tensor::new(2, 32, vec![0; 31], vec![0; 4], 1.0);
        assert!(matches!(
            short,
            Err(FormatError::Length {
                expected: 32,
                found: 31,
                ..
            })
        ));
        let huge = Nvfp4Tensor::new(usize::MAX, 32, vec![], vec![], 1.0);
        assert!(matches!(huge, Err(FormatError::TooLarge { .. })));
    }

    #[test]
    fn the_tensor_scale_must_be_finite() {
        for scale in [f32::NAN, f32::INFINITY] {
            let result = Nvfp4Tensor::new(1, 16, vec![0; 8], vec![0], scale);
            assert!(matches!(result, Err(FormatError::TensorScale { .. })));
        }
    }

    #[test]
    fn no_magnitude_exceeds_the_bound() {
        // 6 × 448 × 2, by a negative scale, which is exact here; and nothing.
        let tensor = Nvfp4Tensor::new(1, 32, vec![0x77; 16], vec![0x38, 0xFE], -2.0).unwrap();
        assert_eq!(tensor.magnitude_bound(), 5376.0);
        assert_eq!(tensor.dequantise_scaled()[31], 5376.0);
        assert_eq!(build(0, 0, vec![]).unwrap().magnitude_bound(), 0.0);
    }

    #[test]
    fn no_rows_and_negative_scales_are_legal() {
        assert!(build(0, 16, vec![]).is_ok());
        assert!(build(0, 0, vec![]).is_ok());
        assert!(build(1, 16, vec![0xFE]).is_ok());
    }
}
