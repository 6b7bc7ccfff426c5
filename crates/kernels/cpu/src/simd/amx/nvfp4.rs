//! Converts NVFP4 for tiles.

use std::arch::x86_64::*;

use gauntlet_tensors::{e2m1, e4m3};

/// The bf16 value of each e2m1 code under each scale. It has at most six significant bits, so the upper half of an f32
/// holds it exactly.
struct Scaled([[u16; 16]; 256]);

static SCALED: Scaled = Scaled({
    let mut table = [[0; 16]; 256];
    let mut scale = 0;
    while scale < 256 {
        let mut code = 0;
        while code < 16 {
            let value = e2m1::VALUES[code] * e4m3::VALUES[scale];
            table[scale][code] = (value.to_bits() >> 16) as u16;
            code += 1;
        }
        scale += 1;
    }
    table
});

/// Converts two blocks at a time: their codes, one per word, index the rows of the table that their scales select.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")]
pub(super) fn widen(codes: &[u8], scales: &[u8], words: &mut [u32], stride: usize) {
    let (pairs, last) = scales.as_chunks::<2>();
    let (code_pairs, last_codes) = codes.as_chunks::<16>();
    let mut places = words.chunks_mut(stride);
    for ((scales, codes), place) in pairs.iter().zip(code_pairs).zip(&mut places) {
        store(look_up(codes, *scales), &mut place[..16]);
    }
    if let ([scale], Some(place)) = (last, places.next()) {
        let mut whole = [0; 16];
        whole[..8].copy_from_slice(last_codes);
        store(look_up(&whole, [*scale, 0]), &mut place[..16]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")]
fn store(values: __m512i, place: &mut [u32]) {
    assert!(place.len() == 16);
    // SAFETY: 16 words.
    unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), values) };
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi")]
fn look_up(codes: &[u8; 16], scales: [u8; 2]) -> __m512i {
    // SAFETY: 16 bytes.
    let codes = unsafe { _mm_loadu_si128(codes.as_ptr().cast()) };
    // Each of a block's four quarters holds its eight bytes, and shifts a different nibble to the low end of each word.
    let spread = _mm512_permutexvar_epi64(
        _mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1),
        _mm512_castsi128_si512(codes),
    );
    let nibble = |quarter: i64| 0x000C_0008_0004_0000 + quarter * 0x0010_0010_0010_0010;
    let shifts = _mm512_setr_epi64(
        nibble(0),
        nibble(1),
        nibble(2),
        nibble(3),
        nibble(0),
        nibble(1),
        nibble(2),
        nibble(3),
    );
    let moved = _mm512_multishift_epi64_epi8(shifts, spread);
    // The second block's values are the upper half of the table: (moved & 15) | 16.
    let second = _mm512_setr_epi64(
        0,
        0,
        0,
        0,
        0x0010_0010_0010_0010,
        0x0010_0010_0010_0010,
        0x0010_0010_0010_0010,
        0x0010_0010_0010_0010,
    );
    let places = _mm512_ternarylogic_epi64::<0xF8>(second, moved, _mm512_set1_epi16(15));
    // SAFETY: each row of the table is 32 bytes.
    let table = unsafe {
        let [first, second] = scales.map(|scale| SCALED.0[usize::from(scale)].as_ptr());
        let first = _mm512_castsi256_si512(_mm256_loadu_si256(first.cast()));
        _mm512_inserti64x4::<1>(first, _mm256_loadu_si256(second.cast()))
    };
    _mm512_permutexvar_epi16(places, table)
}
