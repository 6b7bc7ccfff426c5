//! 512-bit vectors, and the byte products of AVX-512 VNNI.

use std::arch::asm;
use std::arch::x86_64::*;

use super::DOUBLED;
use super::floats::{FloatLanes, scaled_values};
use super::kernel::{ColumnChunk, Lanes, RowChunk, Sums};
use super::offset::{DOUBLED_OFFSET, HALF_MASK, HALF_SHIFT, OFFSET, UNIT};

/// AVX-512 F, BW, DQ and VNNI, and optionally VBMI, whose 64-byte table ignores the bits above a code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Vnni<const VBMI: bool>;

/// Like the other with VBMI, but multiplies scales by adding exponents and looking up the product of both mantissas:
/// four instructions in place of one, none of them in the multiplying units. This pays where dots wait for those units
/// while others are idle, as on Zen 4: there a pair of chunks takes 5.4 clocks instead of 6.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Sums;

/// The first and the last four bytes of each block of codes. Blocks are in the [`ORDER`] in which the shuffle leaves them;
/// those that `kept` excludes have codes of zero.
///
/// # Safety
///
/// AVX-512 F is available, and `packed` points to 128 bytes.
#[inline(always)]
unsafe fn halves(packed: *const u8, kept: __mmask16) -> [__m512i; 2] {
    // SAFETY: the caller promises both.
    unsafe {
        let low = _mm512_castsi512_ps(_mm512_loadu_si512(packed.cast()));
        let high = _mm512_castsi512_ps(_mm512_loadu_si512(packed.add(64).cast()));
        [
            _mm512_castps_si512(_mm512_maskz_shuffle_ps::<0x88>(kept, low, high)),
            _mm512_castps_si512(_mm512_maskz_shuffle_ps::<0xDD>(kept, low, high)),
        ]
    }
}

/// The block in each lane.
const ORDER: [u8; 16] = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

/// The four vectors of codes, each code in the low nibble of a byte. Of each block's eight bytes: the low then the high
/// nibbles of the first four, then those of the last four. For the rest see [`halves`].
///
/// # Safety
///
/// As [`halves`], and AVX-512 BW is available.
#[inline(always)]
unsafe fn codes(packed: *const u8, kept: __mmask16) -> [__m512i; 4] {
    // SAFETY: the caller promises both.
    unsafe {
        let [first, second] = halves(packed, kept);
        [
            first,
            _mm512_srli_epi16::<4>(first),
            second,
            _mm512_srli_epi16::<4>(second),
        ]
    }
}

/// Mask for [`halves`] that keeps all blocks.
const ALL: __mmask16 = !0;

/// # Safety
///
/// AVX-512 F and BW are available, and VBMI if the parameter says so.
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

/// A column's values, and the initial value of its dots.
///
/// # Safety
///
/// As [`look_up`], and AVX-512 VNNI is there.
#[inline(always)]
unsafe fn look_up_column<const VBMI: bool>(codes: [__m512i; 4]) -> ([__m512i; 4], __m512i) {
    // SAFETY: the caller promises them.
    unsafe {
        let values = look_up::<VBMI>(&DOUBLED, codes);
        let offset = dot(_mm512_setzero_si512(), &[_mm512_set1_epi8(OFFSET); 4], &values);
        (values, _mm512_sub_epi32(_mm512_setzero_si512(), offset))
    }
}

/// 2⁻⁸ times each block's scale.
///
/// # Safety
///
/// AVX-512 F and VL are available, and `scales` points to 16 bytes.
#[inline(always)]
unsafe fn decode(scales: *const u8) -> __m512 {
    // SAFETY: the caller promises both.
    unsafe {
        let order = _mm_loadu_si128(ORDER.as_ptr().cast());
        let bytes = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(_mm_loadu_si128(scales.cast()), order));
        let halves = _mm256_and_si256(
            _mm256_slli_epi16::<HALF_SHIFT>(bytes),
            _mm256_set1_epi16(HALF_MASK),
        );
        _mm512_cvtph_ps(halves)
    }
}

/// # Safety
///
/// AVX-512 VNNI is there.
#[inline(always)]
unsafe fn dot(start: __m512i, row: &[__m512i; 4], column: &[__m512i; 4]) -> __m512i {
    let mut sum = start;
    for at in 0..4 {
        // SAFETY: the caller promises it.
        sum = unsafe { _mm512_dpbusd_epi32(sum, row[at], column[at]) };
    }
    sum
}

/// The sums of all lanes, times `unit`.
///
/// # Safety
///
/// AVX-512 F and DQ are there.
#[inline(always)]
unsafe fn totals([a, b, c, d]: [__m512; 4], unit: f32) -> [f32; 4] {
    // SAFETY: the caller promises them.
    unsafe {
        // Adds the halves of a and b side by side, then those of all four, then the quarters.
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let all = _mm512_add_ps(
            _mm512_shuffle_ps::<0x44>(ab, cd),
            _mm512_shuffle_ps::<0xEE>(ab, cd),
        );
        let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
        let total = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
        std::mem::transmute(_mm_mul_ps(total, _mm_set1_ps(unit)))
    }
}

/// What both kinds of lanes have in common.
macro_rules! common {
    () => {
        const BLOCKS: usize = 16;
        type Values = __m512i;
        type Integers = __m512i;

        #[inline(always)]
        unsafe fn dot(start: __m512i, row: &[__m512i; 4], column: &[__m512i; 4]) -> __m512i {
            // SAFETY: the caller's promise is the same.
            unsafe { dot(start, row, column) }
        }
    };
}

/// Sums in a vector, whose products are `1 / unit` times the true ones.
macro_rules! sums {
    ($unit:expr) => {
        type Floats = __m512;

        #[inline(always)]
        unsafe fn no_floats() -> __m512 {
            // SAFETY: the caller promises the instruction set.
            unsafe { _mm512_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn totals(sums: [__m512; 4]) -> [f32; 4] {
            // SAFETY: the caller's promise is the same.
            unsafe { totals(sums, $unit) }
        }
    };
}

impl<const VBMI: bool> Sums for Avx512Vnni<VBMI> {
    sums!(UNIT);
}

impl Sums for Avx512Sums {
    sums!(UNIT);
}

impl Sums for Avx512F32 {
    sums!(1.0);
}

impl Sums for Avx512Bf16 {
    sums!(1.0);
}

impl<const VBMI: bool> Lanes for Avx512Vnni<VBMI> {
    common!();
    type Scales = __m512;

    #[inline(always)]
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            RowChunk {
                values: look_up::<VBMI>(&DOUBLED_OFFSET, codes(packed, ALL)),
                scales: decode(scales),
            }
        }
    }

    #[inline(always)]
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let (values, start) = look_up_column::<VBMI>(codes(packed, ALL));
            ColumnChunk {
                values,
                scales: decode(scales),
                start,
            }
        }
    }

    #[inline(always)]
    unsafe fn accumulate(sums: __m512, dots: __m512i, row: __m512, column: __m512) -> __m512 {
        // SAFETY: the caller promises the instruction set.
        unsafe { _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(row, column), sums) }
    }
}

/// A scale is the sign and exponent of its f32 and, in the third byte, the three bits of its mantissa; a row's bits are
/// above a column's. So the sum of two scales has the sign and the exponent of the product, and its third byte is the
/// index of the entry of [`PRODUCTS`] that completes it. Signs and exponents may overflow on the way; the result is
/// still right. Zero has no such exponent, so its blocks are set to zero instead.
impl Lanes for Avx512Sums {
    common!();
    type Scales = __m512i;

    #[inline(always)]
    unsafe fn row(packed: *const u8, scales: *const u8) -> RowChunk<Self> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let (scales, kept) = addend::<1>(scales);
            RowChunk {
                values: look_up::<true>(&DOUBLED_OFFSET, codes(packed, kept)),
                scales,
            }
        }
    }

    #[inline(always)]
    unsafe fn column(packed: *const u8, scales: *const u8) -> ColumnChunk<Self> {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let (scales, kept) = addend::<4>(scales);
            let (values, start) = look_up_column::<true>(codes(packed, kept));
            ColumnChunk {
                values,
                // Otherwise the sum would contain the bias twice.
                scales: _mm512_sub_epi32(scales, _mm512_set1_epi32(ONE)),
                start,
            }
        }
    }

    #[inline(always)]
    unsafe fn accumulate(sums: __m512, dots: __m512i, row: __m512i, column: __m512i) -> __m512 {
        // SAFETY: the caller promises the instruction set, and the table has 64 entries.
        unsafe {
            let sum = _mm512_add_epi32(row, column);
            let table = _mm512_loadu_si512(PRODUCTS.as_ptr().cast());
            let scale = _mm512_add_epi32(sum, _mm512_maskz_permutexvar_epi8(third_bytes(), sum, table));
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_castsi512_ps(scale), sums)
        }
    }
}

/// The product of two mantissas of three bits, 8 + a and 8 + b, as in the third byte of an f32, including the lowest
/// bit of the exponent; minus the index 8a + b of the entry, which that byte contains already.
static PRODUCTS: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < 64 {
        let product = (8 + at / 8) * (8 + at % 8);
        let bits = if product < 128 {
            (product - 64) * 2
        } else {
            product
        };
        table[at] = (bits - at) as u8;
        at += 1;
    }
    table
};

/// The bits of 1.0.
const ONE: i32 = 1.0_f32.to_bits().cast_signed();

/// The scales for addition, with their mantissas `SHIFT` bits below the position in f32, and a mask of those that are
/// not zero; zeros are replaced by one.
///
/// # Safety
///
/// As [`decode`].
#[inline(always)]
unsafe fn addend<const SHIFT: u32>(scales: *const u8) -> (__m512i, __mmask16) {
    // SAFETY: the caller's promise is the same.
    unsafe {
        let bits = _mm512_castps_si512(decode(scales));
        let outer = _mm512_and_si512(bits, _mm512_set1_epi32(0xFF80_0000_u32.cast_signed()));
        let mantissa = _mm512_and_si512(
            _mm512_srli_epi32::<SHIFT>(bits),
            _mm512_set1_epi32(0x0070_0000 >> SHIFT),
        );
        let one = _mm512_set1_epi32(ONE);
        let kept = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(i32::MAX));
        (_mm512_mask_or_epi32(one, kept, outer, mantissa), kept)
    }
}

/// The third byte of each lane. Hiding the mask's value from the compiler keeps the look-up masked: otherwise the
/// compiler would turn it into two instructions.
#[inline(always)]
fn third_bytes() -> __mmask64 {
    let mut mask = 0x4444_4444_4444_4444;
    // SAFETY: the assembly contains no instructions.
    unsafe { asm!("/* {0} */", inout(reg) mask, options(pure, nomem, nostack, preserves_flags)) };
    mask
}

/// AVX-512 F, VL, BW and DQ: products of f32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512F32;

/// The same and AVX-512 BF16: products of bf16, added in pairs. Subnormal operands and sums count as zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Bf16;

/// The factors of [`decode`] and of the table, which cancel.
static VALUES: [f32; 16] = scaled_values(256.0);

/// The next value of each block times its scale, exact; `codes` moves on to the one after.
///
/// # Safety
///
/// AVX-512 F is there.
#[inline(always)]
unsafe fn next(codes: &mut __m512i, scales: __m512) -> __m512 {
    // SAFETY: the caller promises it, and the table has 16 entries; the permutation ignores the bits above a code.
    unsafe {
        let values = _mm512_permutexvar_ps(*codes, _mm512_loadu_ps(VALUES.as_ptr()));
        *codes = _mm512_srli_epi32::<4>(*codes);
        _mm512_mul_ps(values, scales)
    }
}

impl FloatLanes for Avx512F32 {
    const ORDER: &'static [u8] = &ORDER;
    const PAIRED: bool = false;
    type Vector = __m512;
    type Codes = __m512i;
    type Scales = __m512;

    #[inline(always)]
    unsafe fn codes(packed: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller's promise is the same.
        unsafe { halves(packed, ALL) }
    }

    #[inline(always)]
    unsafe fn scales(scales: *const u8) -> __m512 {
        // SAFETY: the caller's promise is the same.
        unsafe { decode(scales) }
    }

    #[inline(always)]
    unsafe fn next(codes: &mut __m512i, scales: __m512) -> __m512 {
        // SAFETY: the caller's promise is the same.
        unsafe { next(codes, scales) }
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: __m512, row: __m512, column: __m512) -> __m512 {
        // SAFETY: the caller promises the instruction set.
        unsafe { _mm512_fmadd_ps(row, column, sums) }
    }
}

impl FloatLanes for Avx512Bf16 {
    const ORDER: &'static [u8] = &ORDER;
    const PAIRED: bool = true;
    type Vector = __m512i;
    type Codes = __m512i;
    type Scales = __m512;

    #[inline(always)]
    unsafe fn codes(packed: *const u8) -> [__m512i; 2] {
        // SAFETY: the caller's promise is the same.
        unsafe { halves(packed, ALL) }
    }

    #[inline(always)]
    unsafe fn scales(scales: *const u8) -> __m512 {
        // SAFETY: the caller's promise is the same.
        unsafe { decode(scales) }
    }

    /// A value times its scale has at most six significant bits, so the upper half of its f32 is the same number in bf16.
    #[inline(always)]
    unsafe fn next(codes: &mut __m512i, scales: __m512) -> __m512i {
        // SAFETY: the caller's promise is the same.
        unsafe {
            let low = _mm512_castps_si512(next(codes, scales));
            let high = _mm512_castps_si512(next(codes, scales));
            _mm512_or_si512(_mm512_srli_epi32::<16>(low), high)
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: __m512, row: __m512i, column: __m512i) -> __m512 {
        // SAFETY: the caller promises the instruction set; both types are 512 bits without further rules.
        unsafe {
            let [row, column] = std::mem::transmute::<[__m512i; 2], [__m512bh; 2]>([row, column]);
            _mm512_dpbf16_ps(sums, row, column)
        }
    }
}
