//! Quantising `f32` to NVFP4.

use gauntlet_tensors::{e2m1, e4m3};

use crate::{BLOCK, FormatError, Nvfp4Tensor, nvfp4};

/// The largest magnitude of an NVFP4 tensor without its tensor scale: 6 × 448.
const MAX: f32 = e2m1::MAX * e4m3::MAX;

impl Nvfp4Tensor {
    /// Quantises a row-major `[rows, columns]` matrix.
    ///
    /// The tensor scale is amax / 2688, so that the largest magnitude becomes 6 × 448; a block's scale is
    /// e4m3(block amax / 6 / tensor scale); values are divided by both and rounded to the nearest e2m1 value, ties to
    /// even, saturating (the recipe of "Pretraining Large Language Models with NVFP4", arXiv 2509.25149).
    /// Below 2688 times the smallest normal f32, where quotients are coarse, the tensor scale is the next one up.
    /// Values are scaled by the stored (rounded) tensor scale, in `f64`, so that rounding uses the scale of dequantising.
    /// A tensor of zeros gets scales of 0 and a tensor scale of 1; signs of zeros are kept.
    ///
    /// # Errors
    /// When `columns` is not a multiple of 16, `values` has another length than `rows × columns`, or a value is not
    /// finite.
    pub fn quantise(rows: usize, columns: usize, values: &[f32]) -> Result<Self, FormatError> {
        let elements = nvfp4::element_count(rows, columns)?;
        nvfp4::check_length("values", rows, columns, elements, values.len())?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(FormatError::NonFinite {
                row: at / columns,
                column: at % columns,
                value: values[at],
            });
        }
        let tensor_scale = tensor_scale(values);
        let mut packed = Vec::with_capacity(elements / 2);
        let mut scales = Vec::with_capacity(elements / BLOCK);
        for block in values.chunks_exact(BLOCK) {
            let scale = block_scale(block, tensor_scale);
            let divisor = f64::from(e4m3::decode(scale)) * f64::from(tensor_scale);
            scales.push(scale);
            packed.extend(
                block
                    .chunks_exact(2)
                    .map(|pair| encode(pair[0], divisor) | (encode(pair[1], divisor) << 4)),
            );
        }
        Self::new(rows, columns, packed, scales, tensor_scale)
    }
}

fn largest_magnitude(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

fn tensor_scale(values: &[f32]) -> f32 {
    let largest = largest_magnitude(values);
    if largest == 0.0 {
        return 1.0;
    }
    let scale = largest / MAX;
    if scale < f32::MIN_POSITIVE {
        // Subnormals are coarse: rounded down, the scale may be 0, or so small that the largest value saturates.
        scale.next_up()
    } else {
        scale
    }
}

fn block_scale(block: &[f32], tensor_scale: f32) -> u8 {
    let scale = f64::from(largest_magnitude(block)) / f64::from(e2m1::MAX) / f64::from(tensor_scale);
    e4m3::encode(scale)
}

/// The code of `value / divisor`. A block with a scale of 0 has a divisor of 0, and its values become zeros.
fn encode(value: f32, divisor: f64) -> u8 {
    e2m1::encode(if divisor == 0.0 {
        0.0f64.copysign(f64::from(value))
    } else {
        f64::from(value) / divisor
    })
}
