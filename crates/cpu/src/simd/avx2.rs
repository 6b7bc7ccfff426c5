//! AVX2 and FMA: 256-bit fused multiply-adds; e2m1 magnitudes looked up by an eight-way permutation.

use std::arch::x86_64::*;

use super::{Codes, LANES, Loops, SoftmaxLanes, vector};

const ROWS: usize = 6;
const VECTORS: usize = 2;
const COLUMNS: usize = 8 * VECTORS;

/// 6 × 16: twelve accumulators, two operand vectors and a broadcast fill fifteen of the sixteen registers.
pub(super) static LOOPS: Loops = Loops {
    rows: ROWS,
    columns: COLUMNS,
    accumulators: ROWS * VECTORS,
    multiply,
    decode,
    softmax_rows: softmax::<ROWS, { 8 * ROWS }>,
    softmax_columns: softmax::<COLUMNS, { 2 * COLUMNS }>,
    widen,
    turn,
    scale,
    swiglu,
};

/// # Safety
///
/// `a` holds `depth · ROWS` values, `b` `depth · COLUMNS`, `c` `ROWS · COLUMNS`.
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply(depth: usize, a: *const f32, b: *const f32, c: *mut f32, accumulate: bool) {
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
    if accumulate {
        for (row, sums) in sums.iter_mut().enumerate() {
            for (vector, sum) in sums.iter_mut().enumerate() {
                // SAFETY: row < ROWS and vector < VECTORS, within c.
                *sum = unsafe { _mm256_loadu_ps(c.add(row * COLUMNS + 8 * vector)) };
            }
        }
    }
    for k in 0..depth {
        // SAFETY: k < depth, so the vectors lie within b.
        let b: [__m256; VECTORS] =
            std::array::from_fn(|vector| unsafe { _mm256_loadu_ps(b.add(k * COLUMNS + 8 * vector)) });
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: k < depth and row < ROWS, within a.
            let a = _mm256_set1_ps(unsafe { *a.add(k * ROWS + row) });
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = _mm256_fmadd_ps(a, b, *sum);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (vector, sum) in sums.iter().enumerate() {
            // SAFETY: row < ROWS and vector < VECTORS, within c.
            unsafe { _mm256_storeu_ps(c.add(row * COLUMNS + 8 * vector), *sum) };
        }
    }
}

#[target_feature(enable = "avx2")]
fn decode(codes: &Codes, blocks: usize, width: usize, panel: &mut [f32]) {
    assert!(panel.len() >= blocks * 16 * width && width <= super::LANES);
    let magnitudes = _mm256_setr_ps(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0);
    let sign_bit = _mm256_set1_epi32(i32::MIN);
    for first in (0..width).step_by(8) {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((width - first).min(8) as i32), lanes);
        for half in 0..2 * blocks {
            // SAFETY: a row of `words` and of `scales` has 32 lanes, and first ≤ 24.
            let (mut codes, scale) = unsafe {
                (
                    _mm256_loadu_si256(codes.words[half][first..].as_ptr().cast()),
                    _mm256_loadu_ps(codes.scales[half / 2][first..].as_ptr()),
                )
            };
            for depth in 8 * half..8 * half + 8 {
                // The permutation reads the low three bits of each lane, the magnitude; the fourth is the sign.
                let magnitude = _mm256_permutevar8x32_ps(magnitudes, codes);
                let sign = _mm256_and_si256(_mm256_slli_epi32::<28>(codes), sign_bit);
                let value = _mm256_mul_ps(_mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign)), scale);
                // SAFETY: depth < 16 · blocks, and the mask ends the store at `width`, within the panel.
                unsafe { _mm256_maskstore_ps(panel.as_mut_ptr().add(depth * width + first), mask, value) };
                codes = _mm256_srli_epi32::<4>(codes);
            }
        }
    }
}

#[target_feature(enable = "avx2,fma")]
fn softmax<const W: usize, const C: usize>(panel: &mut [f32], scale: f32, lanes: &mut SoftmaxLanes) {
    vector::softmax::<W, C, true>(panel, scale, lanes);
}

#[target_feature(enable = "avx2,fma")]
fn widen(codes: &[u8], values: &mut [f32]) {
    vector::widen(codes, values);
}

#[target_feature(enable = "avx2,fma")]
fn turn(block: &[f32], turned: &mut [f32; LANES * LANES]) {
    vector::turn::<COLUMNS>(block, turned);
}

#[target_feature(enable = "avx2,fma")]
fn scale(sums: &[f32], scale: f64, out: &mut [f32]) {
    vector::scale(sums, scale, out);
}

#[target_feature(enable = "avx2,fma")]
fn swiglu(gate: &[f32], up: &[f32], scales: [f64; 2], out: &mut [f32]) {
    vector::swiglu::<true>(gate, up, scales, out);
}
