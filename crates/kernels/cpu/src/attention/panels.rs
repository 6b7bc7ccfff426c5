//! Dequantised operands in the layout of the micro-kernel.
//!
//! A panel holds `width` neighbouring rows of an operand (rows or columns of the register block), k-major:
//! `panel[k · width + lane]`. Lanes beyond the operand are zero.

use std::ops::Range;

use gauntlet_problems::{AttentionFormat, HeadTensor, Scaling};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::simd::{Instructions, LANES, prefetch};

/// The rows of one sequence and head in a [`HeadTensor`].
///
/// Packed values are elements times the ratio of their scale to the head's largest scale: ±1 if the head has one scale.
/// The [largest scale](Self::scale) is applied later, so that packed values do not overflow however large it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadRows<'a> {
    instructions: Instructions,
    tensor: &'a HeadTensor,
    /// The element at which the head starts.
    start: usize,
    size: usize,
    scales: &'a [f32],
    /// The largest magnitude among the scales: computed once, not per row, because a head may have a scale for each of
    /// its blocks.
    largest: f32,
    scaling: Scaling,
}

impl<'a> HeadRows<'a> {
    /// Rows of `size` values that start at element `start` and have the scales `scales`.
    pub fn new(
        instructions: Instructions,
        tensor: &'a HeadTensor,
        start: usize,
        size: usize,
        scales: Range<usize>,
        scaling: Scaling,
    ) -> Self {
        let scales = &tensor.scales[scales];
        Self {
            instructions,
            tensor,
            start,
            size,
            scales,
            largest: scales.iter().fold(0.0, |largest, scale| largest.max(scale.abs())),
            scaling,
        }
    }

    /// The largest magnitude among the head's scales; packed values must still be multiplied by it.
    pub fn scale(&self) -> f32 {
        self.largest
    }

    /// The ratio of a row's scale to the largest.
    pub fn share(&self, row: usize) -> f32 {
        let scale = self.scales[self.scaling.place(row)];
        if scale == 0.0 { 0.0 } else { scale / self.largest }
    }

    /// The element format.
    pub fn format(&self) -> AttentionFormat {
        self.tensor.format
    }

    /// The elements of some rows.
    pub fn bytes(&self, rows: Range<usize>) -> &'a [u8] {
        let element = self.tensor.format.bytes();
        let first = self.start + rows.start * self.size;
        &self.tensor.bytes[first * element..(first + rows.len() * self.size) * element]
    }

    /// Prefetches some rows.
    pub fn prefetch(&self, rows: Range<usize>) {
        prefetch(self.bytes(rows));
    }

    /// Row `row` as f32, times the ratio of its scale to the largest.
    pub fn dequantise(&self, row: usize, values: &mut [f32]) {
        let bytes = self.bytes(row..row + 1);
        match self.tensor.format {
            AttentionFormat::E4m3 => self.instructions.widen(bytes, values),
            AttentionFormat::Int8 => {
                for (value, byte) in values.iter_mut().zip(bytes) {
                    *value = f32::from(byte.cast_signed());
                }
            }
            AttentionFormat::F16 => {
                let mut halves = [f16::ZERO; LANES];
                for (values, bytes) in values.chunks_mut(LANES).zip(bytes.chunks(2 * LANES)) {
                    let halves = &mut halves[..values.len()];
                    for (half, bytes) in halves.iter_mut().zip(bytes.as_chunks::<2>().0) {
                        *half = f16::from_le_bytes(*bytes);
                    }
                    halves.convert_to_f32_slice(values);
                }
            }
            AttentionFormat::Bf16 => {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<2>().0) {
                    *value = bf16::from_le_bytes(*bytes).to_f32();
                }
            }
        }
        let share = self.share(row);
        if share != 1.0 {
            values.iter_mut().for_each(|value| *value *= share);
        }
    }

    /// Packs rows side by side: the panels of an operand whose depth is the head dimension (Q and K). `scratch` holds
    /// `width · size` values; in `panels`, a new panel starts every `stride` values.
    pub fn pack_across(
        &self,
        rows: Range<usize>,
        width: usize,
        scratch: &mut [f32],
        panels: &mut [f32],
        stride: usize,
    ) {
        for (first, panel) in rows.clone().step_by(width).zip(panels.chunks_mut(stride)) {
            let lanes = width.min(rows.end - first);
            for (row, values) in (first..first + lanes).zip(scratch.chunks_exact_mut(self.size)) {
                self.dequantise(row, values);
            }
            for (k, turned) in panel.chunks_exact_mut(width).take(self.size).enumerate() {
                for (lane, value) in turned[..lanes].iter_mut().enumerate() {
                    *value = scratch[lane * self.size + k];
                }
                turned[lanes..].fill(0.0);
            }
        }
    }

    /// Packs rows one after another: the panels of an operand whose depth is the position (V). `scratch` holds `size`
    /// values; in `panels`, a new panel starts every `stride` values.
    pub fn pack_along(
        &self,
        rows: Range<usize>,
        width: usize,
        scratch: &mut [f32],
        panels: &mut [f32],
        stride: usize,
    ) {
        let values = &mut scratch[..self.size];
        for (k, row) in rows.enumerate() {
            self.dequantise(row, values);
            for (values, panel) in values.chunks(width).zip(panels.chunks_mut(stride)) {
                let lanes = &mut panel[k * width..(k + 1) * width];
                lanes[..values.len()].copy_from_slice(values);
                lanes[values.len()..].fill(0.0);
            }
        }
    }
}
