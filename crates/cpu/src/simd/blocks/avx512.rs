//! 512-bit vectors, and the byte products of AVX-512 VNNI.

use std::arch::x86_64::*;

use super::DOUBLED;
use super::kernel::Lanes;
use super::offset::{DOUBLED_OFFSET, HALF_MASK, HALF_SHIFT, OFFSET, UNIT};

/// AVX-512 F, BW, DQ and VNNI; and VBMI, whose table of 64 bytes takes codes with whatever lies above them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Vnni<const VBMI: bool>;

/// The four vectors of codes, each in the low nibble of a byte: of each block's eight bytes the first four, their low then
/// their high nibbles, then the last four. Blocks lie in the order 0, 1, 8, 9, 2, 3, 10, 11, …, as the shuffle leaves them.
///
/// # Safety
///
/// AVX-512 F and BW are there, and 128 bytes at `packed`.
#[inline(always)]
unsafe fn codes(packed: *const u8) -> [__m512i; 4] {
    // SAFETY: the caller promises both.
    unsafe {
        let low = _mm512_castsi512_ps(_mm512_loadu_si512(packed.cast()));
        let high = _mm512_castsi512_ps(_mm512_loadu_si512(packed.add(64).cast()));
        let first = _mm512_castps_si512(_mm512_shuffle_ps::<0x88>(low, high));
        let second = _mm512_castps_si512(_mm512_shuffle_ps::<0xDD>(low, high));
        [
            first,
            _mm512_srli_epi16::<4>(first),
            second,
            _mm512_srli_epi16::<4>(second),
        ]
    }
}

/// # Safety
///
/// AVX-512 F and BW are there, and VBMI if it says so.
#[inline(always)]
unsafe fn look_up<const VBMI: bool>(table: &[i8; 16], mut codes: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller promises them, and the table has 16 entries.
    unsafe {
        let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
        for codes in &mut codes {
            *codes = if VBMI {
                _mm512_permutexvar_epi8(*codes, table)
            } else {
                _mm512_shuffle_epi8(table, _mm512_and_si512(*codes, _mm512_set1_epi8(15)))
            };
        }
    }
    codes
}

impl<const VBMI: bool> Lanes for Avx512Vnni<VBMI> {
    const BLOCKS: usize = 16;
    const UNIT: f32 = UNIT;
    type Values = __m512i;
    type Integers = __m512i;
    type Floats = __m512;

    #[inline(always)]
    unsafe fn row(packed: *const u8) -> [__m512i; 4] {
        // SAFETY: the caller's promise is the same.
        unsafe { look_up::<VBMI>(&DOUBLED_OFFSET, codes(packed)) }
    }

    #[inline(always)]
    unsafe fn column(packed: *const u8) -> ([__m512i; 4], __m512i) {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let values = look_up::<VBMI>(&DOUBLED, codes(packed));
            let offsets = [_mm512_set1_epi8(OFFSET); 4];
            let offset = Self::dot(_mm512_setzero_si512(), &offsets, &values);
            (values, _mm512_sub_epi32(_mm512_setzero_si512(), offset))
        }
    }

    #[inline(always)]
    unsafe fn scales(scales: *const u8) -> __m512 {
        // SAFETY: the caller promises the instruction set, and 16 bytes at `scales`.
        unsafe {
            let order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
            let bytes = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_loadu_si128(scales.cast()), order));
            let halves = _mm256_and_si256(
                _mm256_slli_epi16::<HALF_SHIFT>(bytes),
                _mm256_set1_epi16(HALF_MASK),
            );
            _mm512_cvtph_ps(halves)
        }
    }

    #[inline(always)]
    unsafe fn dot(start: __m512i, row: &[__m512i; 4], column: &[__m512i; 4]) -> __m512i {
        let mut sum = start;
        for at in 0..4 {
            // SAFETY: the caller promises the instruction set.
            sum = unsafe { _mm512_dpbusd_epi32(sum, row[at], column[at]) };
        }
        sum
    }

    #[inline(always)]
    unsafe fn no_floats() -> __m512 {
        // SAFETY: the caller promises the instruction set.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn accumulate(sums: __m512, dots: __m512i, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller promises the instruction set.
        unsafe { _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(a, b), sums) }
    }

    #[inline(always)]
    unsafe fn totals([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // SAFETY: the caller promises the instruction set.
        unsafe {
            // Halves of a and b side by side, then those of all four, then quarters are added.
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            let all = _mm512_add_ps(
                _mm512_shuffle_ps::<0x44>(ab, cd),
                _mm512_shuffle_ps::<0xEE>(ab, cd),
            );
            let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
            let total = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
            std::mem::transmute(total)
        }
    }
}
