//! AVX-512: 512-bit fused multiply-adds.

use std::arch::x86_64::*;

use super::{LANES, Loops, SoftmaxLanes, vector};

const ROWS: usize = 8;
const VECTORS: usize = 2;
const COLUMNS: usize = 16 * VECTORS;

/// 8 × 32: sixteen accumulators are twice what two FMA units need to hide their latency, and tiles with multiples of 8
/// rows and 32 columns need no padding.
pub(super) static LOOPS: Loops = Loops {
    rows: ROWS,
    columns: COLUMNS,
    accumulators: ROWS * VECTORS,
    multiply,
    softmax_rows: softmax::<ROWS, { 4 * ROWS }>,
    softmax_columns: softmax::<COLUMNS, COLUMNS>,
    widen,
    turn,
    scale,
    swiglu,
    halve: super::avx2::halve,
};

/// # Safety
///
/// `a` holds `depth · ROWS` values, `b` `depth · COLUMNS`, `c` `ROWS · COLUMNS`.
#[target_feature(enable = "avx512f")]
unsafe fn multiply(depth: usize, a: *const f32, b: *const f32, c: *mut f32, accumulate: bool) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    if accumulate {
        for (row, sums) in sums.iter_mut().enumerate() {
            for (vector, sum) in sums.iter_mut().enumerate() {
                // SAFETY: row < ROWS and vector < VECTORS, within c.
                *sum = unsafe { _mm512_loadu_ps(c.add(row * COLUMNS + 16 * vector)) };
            }
        }
    }
    for k in 0..depth {
        // SAFETY: k < depth, so the vectors lie within b.
        let b: [__m512; VECTORS] =
            std::array::from_fn(|vector| unsafe { _mm512_loadu_ps(b.add(k * COLUMNS + 16 * vector)) });
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: k < depth and row < ROWS, within a.
            let a = _mm512_set1_ps(unsafe { *a.add(k * ROWS + row) });
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = _mm512_fmadd_ps(a, b, *sum);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (vector, sum) in sums.iter().enumerate() {
            // SAFETY: row < ROWS and vector < VECTORS, within c.
            unsafe { _mm512_storeu_ps(c.add(row * COLUMNS + 16 * vector), *sum) };
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn softmax<const W: usize, const C: usize>(panel: &mut [f32], scale: f32, lanes: &mut SoftmaxLanes) {
    vector::softmax::<W, C, true>(panel, scale, lanes);
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn widen(codes: &[u8], values: &mut [f32]) {
    vector::widen(codes, values);
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn turn(block: &[f32], turned: &mut [f32; LANES * LANES]) {
    if block.len() < LANES * COLUMNS {
        return vector::turn::<COLUMNS>(block, turned);
    }
    let (source, target) = (block.as_ptr().cast::<u32>(), turned.as_mut_ptr().cast::<u32>());
    for (row, column) in [(0, 0), (0, 16), (16, 0), (16, 16)] {
        // SAFETY: each call accesses a quarter of the 32 × 32 values.
        unsafe {
            let source = source.add(row * COLUMNS + column);
            transpose(source, COLUMNS, target.add(column * LANES + row), LANES);
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn scale(sums: &[f32], scale: f64, out: &mut [f32]) {
    vector::scale(sums, scale, out);
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
fn swiglu(gate: &[f32], up: &[f32], scales: [f64; 2], out: &mut [f32]) {
    vector::swiglu::<true>(gate, up, scales, out);
}

/// Transposes 16 × 16 words; source rows are `from` words apart, target rows `to`.
///
/// # Safety
///
/// There are 16 words in each of the 16 rows of both places.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose(source: *const u32, from: usize, target: *mut u32, to: usize) {
    const TILE: usize = 16;
    // SAFETY: row < 16.
    let rows: [__m512i; TILE] =
        std::array::from_fn(|row| unsafe { _mm512_loadu_si512(source.add(from * row).cast()) });
    // Interleaves the words of two rows, then of four: quarter l of `fours[4 * i + j]` is column 4l + j of rows 4i … 4i
    // + 3.
    let twos: [__m512i; TILE] = std::array::from_fn(|at| {
        let (one, other) = (rows[at & !1], rows[at | 1]);
        if at & 1 == 0 {
            _mm512_unpacklo_epi32(one, other)
        } else {
            _mm512_unpackhi_epi32(one, other)
        }
    });
    let fours: [__m512i; TILE] = std::array::from_fn(|at| {
        let (first, j) = (at & !3, at & 3);
        let (one, other) = (twos[first + j / 2], twos[first + j / 2 + 2]);
        if j & 1 == 0 {
            _mm512_unpacklo_epi64(one, other)
        } else {
            _mm512_unpackhi_epi64(one, other)
        }
    });
    for j in 0..4 {
        let [a, b, c, d] = [fours[j], fours[4 + j], fours[8 + j], fours[12 + j]];
        let even = (
            _mm512_shuffle_i32x4::<0x88>(a, b),
            _mm512_shuffle_i32x4::<0x88>(c, d),
        );
        let odd = (
            _mm512_shuffle_i32x4::<0xDD>(a, b),
            _mm512_shuffle_i32x4::<0xDD>(c, d),
        );
        let columns = [
            _mm512_shuffle_i32x4::<0x88>(even.0, even.1),
            _mm512_shuffle_i32x4::<0x88>(odd.0, odd.1),
            _mm512_shuffle_i32x4::<0xDD>(even.0, even.1),
            _mm512_shuffle_i32x4::<0xDD>(odd.0, odd.1),
        ];
        for (quarter, column) in columns.into_iter().enumerate() {
            // SAFETY: the column's number is under 16.
            unsafe { _mm512_storeu_si512(target.add(to * (4 * quarter + j)).cast(), column) }
        }
    }
}
