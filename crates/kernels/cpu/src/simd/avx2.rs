//! AVX2 and FMA: 256-bit fused multiply-adds.

use std::arch::x86_64::*;

use super::{LANES, Loops, SoftmaxLanes, vector};

const ROWS: usize = 6;
const VECTORS: usize = 2;
const COLUMNS: usize = 8 * VECTORS;

/// 6 × 16: twelve accumulators, two operand vectors and a broadcast fill fifteen of the sixteen registers.
pub(super) static LOOPS: Loops = Loops {
    rows: ROWS,
    columns: COLUMNS,
    accumulators: ROWS * VECTORS,
    multiply,
    softmax_rows: softmax::<ROWS, { 8 * ROWS }>,
    softmax_columns: softmax::<COLUMNS, { 2 * COLUMNS }>,
    widen,
    turn,
    scale,
    swiglu,
    halve,
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

/// See [`Instructions::halve`](super::Instructions::halve).
#[target_feature(enable = "avx2,f16c")]
pub(super) fn halve(values: &[f32], bytes: &mut [u8]) {
    let (vectors, rest) = values.as_chunks::<8>();
    let (halves, tail) = bytes.split_at_mut(16 * vectors.len());
    for (halves, values) in halves.as_chunks_mut::<16>().0.iter_mut().zip(vectors) {
        // SAFETY: both are as long as the vectors, which need no alignment.
        unsafe {
            let values = _mm256_loadu_ps(values.as_ptr());
            let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values);
            _mm_storeu_si128(halves.as_mut_ptr().cast(), rounded);
        }
    }
    vector::halve(rest, tail);
}

#[target_feature(enable = "avx2,fma")]
fn swiglu(gate: &[f32], up: &[f32], scales: [f64; 2], out: &mut [f32]) {
    vector::swiglu::<true>(gate, up, scales, out);
}
