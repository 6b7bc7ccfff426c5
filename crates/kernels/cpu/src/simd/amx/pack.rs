//! Packs operands of 8-bit elements into tiles.

use std::arch::x86_64::*;

use super::{CHUNK, SIDE, TILE};
use crate::simd::avx512::transpose;

/// Converts codes that are not NaN. The bits of the magnitude, moved to bf16's position, give a value that is 2¹²⁰ too
/// small, except for the eight subnormal codes.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn widen_e4m3(codes: &[u8], words: &mut [u32]) {
    // The multiples of 2⁻⁹ from 0 to 7 · 2⁻⁹.
    const SUBNORMAL: [u16; 8] = [0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60];
    let mut table = [0; SIDE];
    table[..SUBNORMAL.len()].copy_from_slice(&SUBNORMAL);
    // SAFETY: the table is 64 bytes.
    let subnormal = unsafe { _mm512_loadu_si512(table.as_ptr().cast()) };
    for (codes, words) in codes
        .as_chunks::<SIDE>()
        .0
        .iter()
        .zip(words.as_chunks_mut::<TILE>().0)
    {
        // SAFETY: 32 codes.
        let codes = _mm512_cvtepu8_epi16(unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) });
        let magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7F));
        let sign = _mm512_slli_epi16::<8>(_mm512_sub_epi16(codes, magnitude));
        let normal = _mm512_add_epi16(_mm512_slli_epi16::<4>(magnitude), _mm512_set1_epi16(120 << 7));
        let is_subnormal = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(SUBNORMAL.len() as i16));
        let value = _mm512_mask_permutexvar_epi16(normal, is_subnormal, magnitude, subnormal);
        // SAFETY: 16 words.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), _mm512_or_si512(value, sign)) };
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn widen_int8(values: &[u8], words: &mut [u32]) {
    for (values, word) in values.as_chunks::<2>().0.iter().zip(words) {
        let [first, second] = values.map(|value| f32::from(value.cast_signed()).to_bits());
        *word = first >> 16 | second & 0xFFFF_0000;
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn pack_rows(rows: &[u32], size: usize, panel: &mut [u32]) {
    for (row, words) in rows.chunks_exact(size / 2).take(SIDE).enumerate() {
        for (chunk, words) in words.as_chunks::<TILE>().0.iter().enumerate() {
            panel[chunk * CHUNK + row * TILE..][..TILE].copy_from_slice(words);
        }
    }
}

/// # Safety
///
/// `rows` and `panel` hold `SIDE · size / 2` words.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) unsafe fn pack_columns(rows: &[u32], size: usize, panel: &mut [u32]) {
    let width = size / 2;
    for (chunk, half) in (0..size / SIDE).flat_map(|chunk| [(chunk, 0), (chunk, 1)]) {
        let source = &rows[half * TILE * width + chunk * TILE..];
        let tile = &mut panel[chunk * CHUNK + half * TILE * TILE..][..TILE * TILE];
        // SAFETY: the sixteen rows of the source, `width` words apart, are among the 32 rows; the target is a whole
        // tile.
        unsafe { transpose(source.as_ptr(), width, tile.as_mut_ptr(), TILE) }
    }
}

/// # Safety
///
/// As [`Tiles::pack_depths`](super::Tiles::pack_depths) checks.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) unsafe fn pack_depths(rows: &[u32], size: usize, chunk: usize, stride: usize, panels: &mut [u32]) {
    let width = size / 2;
    let mut words = [0_u32; TILE * TILE];
    for first in (0..size).step_by(TILE) {
        for (pair, words) in words.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
            // Sixteen values of one depth are eight words.
            let depth = |depth: usize| {
                let values = &rows[depth * width + first / 2..][..TILE / 2];
                // SAFETY: eight words.
                _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(values.as_ptr().cast()) })
            };
            let (one, other) = (depth(2 * pair), _mm512_slli_epi32::<16>(depth(2 * pair + 1)));
            // SAFETY: sixteen words.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), _mm512_or_si512(one, other)) };
        }
        let start = first / SIDE * stride + chunk * CHUNK + first % SIDE * TILE;
        let tile = &mut panels[start..][..TILE * TILE];
        // SAFETY: both are whole tiles.
        unsafe { transpose(words.as_ptr(), TILE, tile.as_mut_ptr(), TILE) }
    }
}

/// Transposes a block of 32 × 32 words.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn turn(block: &mut [f32; SIDE * SIDE]) {
    let before = *block;
    let (source, target) = (before.as_ptr().cast::<u32>(), block.as_mut_ptr().cast::<u32>());
    for (row, column) in [(0, 0), (0, TILE), (TILE, 0), (TILE, TILE)] {
        // SAFETY: each call accesses a quarter of the 32 × 32 words.
        unsafe {
            transpose(
                source.add(row * SIDE + column),
                SIDE,
                target.add(column * SIDE + row),
                SIDE,
            );
        }
    }
}
