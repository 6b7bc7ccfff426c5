//! Products of rows of tokens and of NVFP4 weights, the building blocks of a GEMM.
//!
//! Operands are packed into panels with as many rows, or columns, as a register block, one chunk of K at a time. Panel
//! sizes are in words of 32 bits, whatever the content.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dots;
mod floats;
mod kernel;
mod loops;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod offset;
mod portable;
mod tiles;

use std::ops::Range;

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};
use gauntlet_problems::OutputFormat;

pub(crate) use self::dots::{Dots, Rows};
pub(crate) use self::kernel::Ahead;
use super::{CHUNK, SIDE, Tiles};

/// Bytes of codes of a block.
const BLOCK_BYTES: usize = BLOCK / 2;

/// Twice the value of each e2m1 code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// An operand's side of the register block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Its rows.
    Rows,
    /// Its columns.
    Columns,
}

/// Rows and one panel of columns to multiply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panels<'p> {
    /// Along K.
    pub chunks: usize,
    /// Rows, and columns.
    pub counts: [usize; 2],
    /// Panels of rows, all full except the last.
    pub rows: &'p [f32],
    /// The distance in words from one to the next.
    pub apart: usize,
    pub columns: &'p [f32],
    /// Codes that are needed soon; some are prefetched with each row.
    pub ahead: Ahead,
}

/// The loops of one instruction set; a value exists only if its features were detected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Blocks {
    /// Dots of NVFP4 as integers, exact except for the addition of blocks, or of floats.
    Dots(&'static Dots),
    /// Products of bf16, in which every value times its scale is exact.
    Tiles(Tiles),
}

impl Blocks {
    /// The name of the instructions used.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dots(dots) => dots.name,
            Self::Tiles(_) => "amx",
        }
    }

    /// Rows or columns of a register block, and so of a panel.
    pub fn width(&self, operand: Operand) -> usize {
        match self {
            Self::Dots(dots) => dots.width(operand),
            Self::Tiles(_) => SIDE,
        }
    }

    /// Vector registers that hold the sums of a register block.
    pub fn accumulators(&self) -> usize {
        match self {
            Self::Dots(dots) => dots.rows * dots.columns,
            Self::Tiles(_) => tiles::SUM_TILES,
        }
    }

    /// The number of chunks that hold a depth.
    pub fn chunks(&self, depth: usize) -> usize {
        match self {
            Self::Dots(dots) => dots.chunks(depth),
            Self::Tiles(_) => depth.div_ceil(SIDE),
        }
    }

    /// Words of `chunks` chunks of a panel with `rows` rows, or columns.
    pub fn words(&self, operand: Operand, rows: usize, chunks: usize) -> usize {
        let chunk = match self {
            Self::Dots(dots) => rows * dots.words(operand),
            Self::Tiles(_) => CHUNK,
        };
        chunks.saturating_mul(chunk)
    }

    /// Words of `chunks` chunks of a whole panel.
    pub fn panel_words(&self, operand: Operand, chunks: usize) -> usize {
        self.words(operand, self.width(operand), chunks)
    }

    /// Packs `columns` (multiples of 16) of the `rows` of `tensor`, at most one panel, into the start of `panel`. The
    /// tensor scale is not applied.
    pub fn pack(
        &self,
        operand: Operand,
        tensor: &Nvfp4Tensor,
        rows: Range<usize>,
        columns: Range<usize>,
        panel: &mut [f32],
    ) {
        match self {
            Self::Dots(dots) => dots.pack(operand, tensor, rows, columns, panel),
            Self::Tiles(unit) => tiles::pack(*unit, operand, tensor, rows, columns, panel),
        }
    }

    /// Like [`pack`](Self::pack), for tokens of a format without scales: little-endian elements of the same depth.
    pub fn pack_floats<'t>(
        &self,
        operand: Operand,
        format: OutputFormat,
        rows: impl ExactSizeIterator<Item = &'t [u8]>,
        panel: &mut [f32],
    ) {
        match self {
            Self::Dots(dots) => dots.pack_floats(operand, format, rows, panel),
            Self::Tiles(_) => unreachable!("the tile unit gets NVFP4 tokens only"),
        }
    }

    /// Multiplies panels, and adds the products to `sums` or overwrites them. The sum of row r and column c is at
    /// `sums[r · strides[0] + c · strides[1]]`; one of the strides is 1.
    pub fn multiply(&self, panels: &Panels<'_>, sums: &mut [f32], strides: [usize; 2], accumulate: bool) {
        match self {
            Self::Dots(dots) => dots.multiply(panels, sums, strides, accumulate),
            Self::Tiles(unit) => tiles::multiply(*unit, panels, sums, strides, accumulate),
        }
    }
}

#[cfg(test)]
mod tests;
