//! 128-bit vectors of any architecture, by the `wide` crate.
//!
//! Both operands are signed i16: for these, but not for bytes, there are multiply instructions that add neighbours
//! (`pmaddwd` in the baseline of x86-64). Compilers do not find these instructions in plain loops: such a version took
//! 40 times as long.

use gauntlet_tensors::{e2m1, e4m3};
use wide::{f32x4, i16x8, i32x4};

use super::floats::FloatLanes;
use super::kernel::{ColumnChunk, Lanes, RowChunk, Sums};

/// Needs no particular instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

const BLOCKS: usize = 4;

/// Twice the values of a byte's two codes, the lower nibble's first.
static DOUBLED_PAIRS: [[i16; 2]; 256] = {
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        // Twice any value of e2m1 is an integer.
        table[byte] = [
            (2.0 * e2m1::VALUES[byte & 15]) as i16,
            (2.0 * e2m1::VALUES[byte >> 4]) as i16,
        ];
        byte += 1;
    }
    table
};

impl Lanes for Portable {
    const BLOCKS: usize = BLOCKS;
    /// Two vectors of values, two neighbours of each block in turn.
    type Values = [i16x8; 2];
    type Integers = i32x4;
    type Scales = f32x4;

    /// Each vector holds the two values of one byte of each block.
    #[inline(always)]
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self> {
        // SAFETY: the caller promises these lengths.
        let (packed, scales) = unsafe {
            (
                &*packed.cast::<[[u8; 8]; BLOCKS]>(),
                &*scales.cast::<[u8; BLOCKS]>(),
            )
        };
        let mut values = [[i16x8::ZERO; 2]; 4];
        for (at, values) in values.as_flattened_mut().iter_mut().enumerate() {
            let mut pairs = [[0; 2]; BLOCKS];
            for (pair, block) in pairs.iter_mut().zip(packed) {
                *pair = DOUBLED_PAIRS[usize::from(block[at])];
            }
            *values = i16x8::new(bytemuck::cast(pairs));
        }
        RowChunk {
            values,
            scales: f32x4::new(scales.map(e4m3::decode)),
        }
    }

    #[inline(always)]
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self> {
        // SAFETY: the caller's promise is the same.
        let RowChunk { values, scales } = unsafe { Self::row(packed, scales) };
        ColumnChunk {
            values,
            scales,
            start: i32x4::ZERO,
        }
    }

    #[inline(always)]
    unsafe fn dot(start: i32x4, row: &[Self::Values; 4], column: &[Self::Values; 4]) -> i32x4 {
        let mut sum = start;
        for at in 0..8 {
            sum += row[at / 2][at % 2].dot(column[at / 2][at % 2]);
        }
        sum
    }

    /// The product is exact, so the addition is the only rounding, as in a fused multiply-add.
    #[inline(always)]
    unsafe fn accumulate(sums: f32x4, dots: i32x4, row: f32x4, column: f32x4) -> f32x4 {
        sums + dots.round_float() * (row * column)
    }
}

impl Sums for Portable {
    type Floats = f32x4;

    #[inline(always)]
    unsafe fn no_floats() -> f32x4 {
        f32x4::ZERO
    }

    /// Dots are four times the true value.
    #[inline(always)]
    unsafe fn totals(sums: [f32x4; 4]) -> [f32; 4] {
        sums.map(|sum| sum.reduce_add() * 0.25)
    }
}

/// Products of f32 without particular instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PortableF32;

impl Sums for PortableF32 {
    type Floats = f32x4;

    #[inline(always)]
    unsafe fn no_floats() -> f32x4 {
        f32x4::ZERO
    }

    #[inline(always)]
    unsafe fn totals(sums: [f32x4; 4]) -> [f32; 4] {
        sums.map(|sum| sum.reduce_add())
    }
}

impl FloatLanes for PortableF32 {
    const ORDER: &'static [u8] = &[0, 1, 2, 3];
    const PAIRED: bool = false;
    type Vector = f32x4;
    type Codes = [u32; BLOCKS];
    type Scales = f32x4;

    #[inline(always)]
    unsafe fn codes(packed: *const u8) -> [[u32; BLOCKS]; 2] {
        // SAFETY: the caller promises this length.
        let packed = unsafe { &*packed.cast::<[[[u8; 4]; 2]; BLOCKS]>() };
        [0, 1].map(|half| packed.map(|block| u32::from_le_bytes(block[half])))
    }

    #[inline(always)]
    unsafe fn scales(scales: *const u8) -> f32x4 {
        // SAFETY: the caller promises this length.
        let scales = unsafe { &*scales.cast::<[u8; BLOCKS]>() };
        f32x4::new(scales.map(e4m3::decode))
    }

    #[inline(always)]
    unsafe fn next(codes: &mut [u32; BLOCKS], scales: f32x4) -> f32x4 {
        let values = f32x4::new(codes.map(|code| e2m1::VALUES[(code & 15) as usize]));
        *codes = codes.map(|code| code >> 4);
        values * scales
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: f32x4, row: f32x4, column: f32x4) -> f32x4 {
        row.mul_add(column, sums)
    }
}
