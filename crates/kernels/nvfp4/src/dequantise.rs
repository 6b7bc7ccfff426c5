//! Dequantising NVFP4 tensors, always exactly.

use std::ops::Range;

use half::{bf16, f16};

use gauntlet_tensors::{e2m1, e4m3};

use crate::{BLOCK, Nvfp4Tensor};

/// A number format that holds every product of an e2m1 value and an e4m3 scale exactly.
///
/// Such a product has at most 6 significant bits and lies between 2⁻¹⁰ and 2688, or is 0.
pub trait Element: Copy + sealed::Sealed {
    /// Zero.
    const ZERO: Self;

    /// Converts a product, exactly.
    fn from_product(product: f32) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

impl Element for f32 {
    const ZERO: Self = 0.0;

    fn from_product(product: f32) -> Self {
        product
    }
}

impl Element for f16 {
    const ZERO: Self = f16::ZERO;

    fn from_product(product: f32) -> Self {
        f16::from_f32(product)
    }
}

impl Element for bf16 {
    const ZERO: Self = bf16::ZERO;

    fn from_product(product: f32) -> Self {
        bf16::from_f32(product)
    }
}

impl Nvfp4Tensor {
    /// Writes `blocks` of one row, `16 · blocks.len()` elements, without the tensor scale.
    ///
    /// # Panics
    /// When the row or a block is out of bounds, or `destination` has another length.
    pub fn dequantise_blocks<T: Element>(&self, row: usize, blocks: Range<usize>, destination: &mut [T]) {
        self.decode_blocks(row, blocks, destination, T::from_product);
    }

    /// Writes one row, [`columns`](Self::columns) elements, without the tensor scale.
    ///
    /// # Panics
    /// When the row is out of bounds, or `destination` has another length.
    pub fn dequantise_row<T: Element>(&self, row: usize, destination: &mut [T]) {
        self.dequantise_blocks(row, 0..self.columns() / BLOCK, destination);
    }

    /// All elements, row-major, without the tensor scale.
    pub fn dequantise<T: Element>(&self) -> Vec<T> {
        let mut values = vec![T::ZERO; self.rows() * self.columns()];
        for row in 0..self.rows() {
            let start = row * self.columns();
            self.dequantise_row(row, &mut values[start..start + self.columns()]);
        }
        values
    }

    /// Writes `blocks` of one row, `16 · blocks.len()` elements, with the tensor scale: exact, because the product of 6
    /// and 24 significant bits has at most 30.
    ///
    /// # Panics
    /// When the row or a block is out of bounds, or `destination` has another length.
    pub fn dequantise_blocks_scaled(&self, row: usize, blocks: Range<usize>, destination: &mut [f64]) {
        let tensor_scale = f64::from(self.tensor_scale());
        self.decode_blocks(row, blocks, destination, |product| {
            f64::from(product) * tensor_scale
        });
    }

    /// Writes one row, [`columns`](Self::columns) elements, with the tensor scale, exact.
    ///
    /// # Panics
    /// When the row is out of bounds, or `destination` has another length.
    pub fn dequantise_row_scaled(&self, row: usize, destination: &mut [f64]) {
        self.dequantise_blocks_scaled(row, 0..self.columns() / BLOCK, destination);
    }

    /// All elements, row-major, with the tensor scale, exact.
    pub fn dequantise_scaled(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.rows() * self.columns()];
        for row in 0..self.rows() {
            let start = row * self.columns();
            self.dequantise_row_scaled(row, &mut values[start..start + self.columns()]);
        }
        values
    }

    fn decode_blocks<T: Copy>(
        &self,
        row: usize,
        blocks: Range<usize>,
        destination: &mut [T],
        convert: impl Fn(f32) -> T,
    ) {
        assert_eq!(
            destination.len(),
            blocks.len() * BLOCK,
            "the destination must hold the blocks exactly"
        );
        let per_row = self.columns() / BLOCK;
        assert!(
            blocks.end <= per_row,
            "block {} of {per_row} in a row",
            blocks.end
        );
        let scales = &self.scales()[row * per_row..][blocks.clone()];
        let packed = &self.packed()[(row * per_row + blocks.start) * (BLOCK / 2)..];
        let blocks = scales.iter().zip(packed.chunks_exact(BLOCK / 2));
        for ((&scale, packed), destination) in blocks.zip(destination.chunks_exact_mut(BLOCK)) {
            let scale = e4m3::decode(scale);
            let products = e2m1::VALUES.map(|value| convert(value * scale));
            for (&byte, pair) in packed.iter().zip(destination.chunks_exact_mut(2)) {
                pair[0] = products[usize::from(byte & 0xF)];
                pair[1] = products[usize::from(byte >> 4)];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every e2m1 code under every e4m3 number, one block a scale.
    fn every_product() -> Nvfp4Tensor {
        let scales: Vec<u8> = (0..=255).filter(|&code| !e4m3::is_nan(code)).collect();
        let row = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
        let packed = row.repeat(scales.len());
        Nvfp4Tensor::new(scales.len(), 16, packed, scales, 1.0).unwrap()
    }

    #[test]
    fn every_product_is_exact_in_every_format() {
        let tensor = every_product();
        let exact = tensor.dequantise_scaled();
        let (single, half, brain) = (
            tensor.dequantise::<f32>(),
            tensor.dequantise::<f16>(),
            tensor.dequantise::<bf16>(),
        );
        for (at, &value) in exact.iter().enumerate() {
            let expected =
                f64::from(e2m1::decode((at % 16) as u8)) * f64::from(e4m3::decode(tensor.scales()[at / 16]));
            assert_eq!(value.to_bits(), expected.to_bits());
            assert_eq!(f64::from(single[at]).to_bits(), value.to_bits());
            assert_eq!(half[at].to_f64().to_bits(), value.to_bits());
            assert_eq!(brain[at].to_f64().to_bits(), value.to_bits());
        }
    }

    #[test]
    fn the_low_nibble_comes_first_and_blocks_have_their_own_scales() {
        let mut packed = vec![0; 32];
        packed[8] = 0xF2; // row 0, columns 16 and 17
        packed[16] = 0x01; // row 1, column 0
        let tensor = Nvfp4Tensor::new(2, 32, packed, vec![0x38, 0x40, 0x44, 0x38], 0.25).unwrap();
        let values = tensor.dequantise::<f32>();
        assert_eq!((values[16], values[17], values[32]), (2.0, -12.0, 1.5));
        assert_eq!(values.iter().filter(|&&value| value != 0.0).count(), 3);
        assert_eq!(tensor.dequantise_scaled()[17], -3.0);

        let mut block = [0.0f32; 16];
        tensor.dequantise_blocks(0, 1..2, &mut block);
        assert_eq!(block, values[16..32]);
    }
}
