//! 128-bit vectors of AArch64, and their dot products of signed bytes.

use std::arch::aarch64::*;
use std::arch::asm;

use super::DOUBLED;
use super::kernel::{ColumnChunk, Lanes, RowChunk, Sums};

/// NEON and DOTPROD.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neon;

/// Each block's scale.
///
/// # Safety
///
/// NEON is available, and `scales` points to 4 bytes.
#[inline(always)]
unsafe fn decode(scales: *const u8) -> float32x4_t {
    // SAFETY: the caller promises both.
    unsafe {
        let bytes = vcreate_u8(u64::from(scales.cast::<u32>().read_unaligned()));
        let codes = vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
        let magnitude = vshlq_n_u32::<20>(vandq_u32(codes, vdupq_n_u32(0x7F)));
        let sign = vshlq_n_u32::<24>(vandq_u32(codes, vdupq_n_u32(0x80)));
        vmulq_n_f32(vreinterpretq_f32_u32(vorrq_u32(magnitude, sign)), UP)
    }
}

/// The factor by which e4m3 bits, moved to an f32's position, are too small: from the difference of the biases.
const UP: f32 = f32::from_bits((127 + 120) << 23);

impl Lanes for Neon {
    const BLOCKS: usize = 4;
    type Values = int8x16_t;
    type Integers = int32x4_t;
    type Scales = float32x4_t;

    /// Of each block's eight bytes: the low then the high nibbles of the first four, then those of the last four.
    #[inline(always)]
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self> {
        // SAFETY: the caller promises the instruction set, 32 bytes at `packed` and 4 at `scales`, and the table has 16
        // entries.
        unsafe {
            let low = vreinterpretq_u32_u8(vld1q_u8(packed));
            let high = vreinterpretq_u32_u8(vld1q_u8(packed.add(16)));
            let first = vreinterpretq_u8_u32(vuzp1q_u32(low, high));
            let second = vreinterpretq_u8_u32(vuzp2q_u32(low, high));
            let (table, nibbles) = (vld1q_s8(DOUBLED.as_ptr()), vdupq_n_u8(15));
            let values = [
                vqtbl1q_s8(table, vandq_u8(first, nibbles)),
                vqtbl1q_s8(table, vshrq_n_u8::<4>(first)),
                vqtbl1q_s8(table, vandq_u8(second, nibbles)),
                vqtbl1q_s8(table, vshrq_n_u8::<4>(second)),
            ];
            RowChunk {
                values,
                scales: decode(scales),
            }
        }
    }

    #[inline(always)]
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let RowChunk { values, scales } = Self::row(packed, scales);
            ColumnChunk {
                values,
                scales,
                start: vdupq_n_s32(0),
            }
        }
    }

    /// Uses assembly because the standard library's function is not stable.
    #[inline(always)]
    unsafe fn dot(start: int32x4_t, row: &[int8x16_t; 4], column: &[int8x16_t; 4]) -> int32x4_t {
        let mut sum = start;
        for at in 0..4 {
            // SAFETY: the caller promises the instruction set, and only `sum` is written.
            unsafe {
                asm!(
                    ".arch_extension dotprod",
                    "sdot {sum:v}.4s, {row:v}.16b, {column:v}.16b",
                    sum = inout(vreg) sum,
                    row = in(vreg) row[at],
                    column = in(vreg) column[at],
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sum
    }

    #[inline(always)]
    unsafe fn accumulate(
        sums: float32x4_t,
        dots: int32x4_t,
        row: float32x4_t,
        column: float32x4_t,
    ) -> float32x4_t {
        // SAFETY: the caller promises the instruction set.
        unsafe { vfmaq_f32(sums, vcvtq_f32_s32(dots), vmulq_f32(row, column)) }
    }
}

impl Sums for Neon {
    type Floats = float32x4_t;

    #[inline(always)]
    unsafe fn no_floats() -> float32x4_t {
        // SAFETY: the caller promises the instruction set.
        unsafe { vdupq_n_f32(0.0) }
    }

    /// Dots are four times the true value.
    #[inline(always)]
    unsafe fn totals([a, b, c, d]: [float32x4_t; 4]) -> [f32; 4] {
        // SAFETY: the caller promises the instruction set.
        unsafe { std::mem::transmute(vmulq_n_f32(vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)), 0.25)) }
    }
}
