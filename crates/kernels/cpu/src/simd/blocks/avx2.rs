//! 256-bit vectors. Products of bytes by AVX2's two steps, or by AVX-VNNI's one.

use std::arch::x86_64::*;

use super::DOUBLED;
use super::floats::{FloatLanes, scaled_values};
use super::kernel::{ColumnChunk, Lanes, RowChunk, Sums};
use super::offset::{DOUBLED_OFFSET, HALF_MASK, HALF_SHIFT, OFFSET, UNIT};

/// AVX2, FMA and F16C: byte products are added in pairs to i16 (at most 8 · 24 · 12, which cannot overflow), then to
/// i32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2;

/// Like AVX2, with the products of AVX-VNNI, which adds four byte products to an i32 in one instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct AvxVnni;

/// The first and the last four bytes of each block of codes. Blocks are in the [`ORDER`] in which the shuffle leaves them.
///
/// # Safety
///
/// AVX2 is available, and `packed` points to 64 bytes.
#[inline(always)]
unsafe fn halves(packed: *const u8) -> [__m256i; 2] {
    // SAFETY: the caller promises both.
    unsafe {
        let low = _mm256_castsi256_ps(_mm256_loadu_si256(packed.cast()));
        let high = _mm256_castsi256_ps(_mm256_loadu_si256(packed.add(32).cast()));
        [
            _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(low, high)),
            _mm256_castps_si256(_mm256_shuffle_ps::<0xDD>(low, high)),
        ]
    }
}

/// The block in each lane.
const ORDER: [u8; 8] = [0, 1, 4, 5, 2, 3, 6, 7];

/// The four vectors of codes. Of each block's eight bytes: the low then the high nibbles of the first four, then those
/// of the last four. For the order of blocks see [`halves`].
///
/// # Safety
///
/// As [`halves`].
#[inline(always)]
unsafe fn codes(packed: *const u8) -> [__m256i; 4] {
    // SAFETY: the caller promises both.
    unsafe {
        let [first, second] = halves(packed);
        let nibbles = _mm256_set1_epi8(15);
        [
            _mm256_and_si256(first, nibbles),
            _mm256_and_si256(_mm256_srli_epi16::<4>(first), nibbles),
            _mm256_and_si256(second, nibbles),
            _mm256_and_si256(_mm256_srli_epi16::<4>(second), nibbles),
        ]
    }
}

/// # Safety
///
/// AVX2 is there.
#[inline(always)]
unsafe fn look_up(table: &[i8; 16], mut codes: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: the caller promises AVX2, and the table has 16 entries.
    unsafe {
        let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
        for codes in &mut codes {
            *codes = _mm256_shuffle_epi8(table, *codes);
        }
    }
    codes
}

/// 2⁻⁸ times each block's scale.
///
/// # Safety
///
/// AVX2 and F16C are available, and `scales` points to 8 bytes.
#[inline(always)]
unsafe fn decode(scales: *const u8) -> __m256 {
    // SAFETY: the caller promises both.
    unsafe {
        let order = _mm_loadl_epi64(ORDER.as_ptr().cast());
        let bytes = _mm_cvtepi8_epi16(_mm_shuffle_epi8(_mm_loadl_epi64(scales.cast()), order));
        let halves = _mm_and_si128(_mm_slli_epi16::<HALF_SHIFT>(bytes), _mm_set1_epi16(HALF_MASK));
        _mm256_cvtph_ps(halves)
    }
}

/// The sums of all lanes, times `unit`.
///
/// # Safety
///
/// AVX2 is there.
#[inline(always)]
unsafe fn totals(sums: [__m256; 4], unit: f32) -> [f32; 4] {
    // SAFETY: the caller promises AVX2.
    unsafe {
        let pairs = _mm256_hadd_ps(_mm256_hadd_ps(sums[0], sums[1]), _mm256_hadd_ps(sums[2], sums[3]));
        let total = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
        std::mem::transmute(_mm_mul_ps(total, _mm_set1_ps(unit)))
    }
}

/// Sums in a vector, whose products are `1 / unit` times the true ones.
macro_rules! sums_256 {
    ($name:ident, $unit:expr) => {
        impl Sums for $name {
            type Floats = __m256;

            #[inline(always)]
            unsafe fn no_floats() -> __m256 {
                // SAFETY: the caller promises the instruction set.
                unsafe { _mm256_setzero_ps() }
            }

            #[inline(always)]
            unsafe fn totals(sums: [__m256; 4]) -> [f32; 4] {
                // SAFETY: the caller's promise is the same.
                unsafe { totals(sums, $unit) }
            }
        }
    };
}

sums_256!(Avx2, UNIT);
sums_256!(AvxVnni, UNIT);
sums_256!(Avx2F32, 1.0);

macro_rules! lanes_256 {
    ($name:ident, $dot:expr) => {
        impl Lanes for $name {
            const BLOCKS: usize = 8;
            type Values = __m256i;
            type Integers = __m256i;
            type Scales = __m256;

            #[inline(always)]
            unsafe fn row(packed: *const u8, from: *const u8) -> RowChunk<Self> {
                // SAFETY: the caller's promise is the same.
                unsafe {
                    RowChunk {
                        values: look_up(&DOUBLED_OFFSET, codes(packed)),
                        scales: decode(from),
                    }
                }
            }
            #[inline(always)]
            unsafe fn column(packed: *const u8, from: *const u8) -> ColumnChunk<Self> {
                // SAFETY: the caller's promise is the same.
                unsafe {
                    let values = look_up(&DOUBLED, codes(packed));
                    let offsets = [_mm256_set1_epi8(OFFSET); 4];
                    let offset = $dot(_mm256_setzero_si256(), &offsets, &values);
                    ColumnChunk {
                        values,
                        scales: decode(from),
                        start: _mm256_sub_epi32(_mm256_setzero_si256(), offset),
                    }
                }
            }
            #[inline(always)]
            unsafe fn dot(start: __m256i, row: &[__m256i; 4], column: &[__m256i; 4]) -> __m256i {
                // SAFETY: the caller promises the instruction set.
                unsafe { $dot(start, row, column) }
            }
            #[inline(always)]
            unsafe fn accumulate(sums: __m256, dots: __m256i, row: __m256, column: __m256) -> __m256 {
                // SAFETY: the caller promises the instruction set.
                unsafe { _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), _mm256_mul_ps(row, column), sums) }
            }
        }
    };
}

/// # Safety
///
/// AVX2 is there.
#[inline(always)]
unsafe fn dot_in_two_steps(start: __m256i, unsigned: &[__m256i; 4], signed: &[__m256i; 4]) -> __m256i {
    // SAFETY: the caller promises AVX2.
    unsafe {
        let mut sums = _mm256_maddubs_epi16(unsigned[0], signed[0]);
        for at in 1..4 {
            sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(unsigned[at], signed[at]));
        }
        _mm256_add_epi32(start, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)))
    }
}

/// # Safety
///
/// AVX-VNNI is there.
#[inline(always)]
unsafe fn dot_in_one_step(start: __m256i, unsigned: &[__m256i; 4], signed: &[__m256i; 4]) -> __m256i {
    let mut sum = start;
    for at in 0..4 {
        // SAFETY: the caller promises AVX-VNNI.
        sum = unsafe { _mm256_dpbusd_avx_epi32(sum, unsigned[at], signed[at]) };
    }
    sum
}

lanes_256!(Avx2, dot_in_two_steps);
lanes_256!(AvxVnni, dot_in_one_step);

/// AVX2, FMA and F16C: products of f32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2F32;

/// The factors of [`decode`] and of the table, which cancel; negative values are not used.
static VALUES: [f32; 16] = scaled_values(256.0);

impl FloatLanes for Avx2F32 {
    const ORDER: &'static [u8] = &ORDER;
    const PAIRED: bool = false;
    type Vector = __m256;
    type Codes = __m256i;
    type Scales = __m256;

    #[inline(always)]
    unsafe fn codes(packed: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller's promise is the same.
        unsafe { halves(packed) }
    }

    #[inline(always)]
    unsafe fn scales(scales: *const u8) -> __m256 {
        // SAFETY: the caller's promise is the same.
        unsafe { decode(scales) }
    }

    /// The permutation ignores the bits above a magnitude; the sign is the code's highest bit.
    #[inline(always)]
    unsafe fn next(codes: &mut __m256i, scales: __m256) -> __m256 {
        // SAFETY: the caller promises the instruction set, and the table has more than eight entries.
        unsafe {
            let magnitudes = _mm256_permutevar8x32_ps(_mm256_loadu_ps(VALUES.as_ptr()), *codes);
            let signs = _mm256_and_ps(
                _mm256_castsi256_ps(_mm256_slli_epi32::<28>(*codes)),
                _mm256_set1_ps(-0.0),
            );
            *codes = _mm256_srli_epi32::<4>(*codes);
            _mm256_mul_ps(_mm256_or_ps(magnitudes, signs), scales)
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: __m256, row: __m256, column: __m256) -> __m256 {
        // SAFETY: the caller promises the instruction set.
        unsafe { _mm256_fmadd_ps(row, column, sums) }
    }
}
