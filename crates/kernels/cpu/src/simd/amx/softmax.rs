//! Exponentials of scores, split into parts for the tile unit.

use std::arch::x86_64::*;

use super::{CHUNK, Product, SIDE, TILE};
use crate::simd::{LANES, SoftmaxLanes, vector};

/// The parameters that turn the scores of a panel of 32 queries into weights: `exp((score − reference) · scale)`.
#[derive(Debug)]
pub(crate) struct Exponents {
    references: [f32; LANES],
    /// Scale for exponentials in base 2.
    scale: f32,
}

/// Updates `maxima`, one lane per query, with the scores of 32 keys.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn raise(scores: &[f32; SIDE * SIDE], maxima: &mut [f32; LANES]) {
    for lanes in [0, TILE] {
        // SAFETY: there are 32 keys, of 32 lanes each.
        let score = |key: usize| unsafe { _mm512_loadu_ps(scores.as_ptr().add(key * SIDE + lanes)) };
        // Four independent maxima, because each operation waits for the one before.
        let mut several: [__m512; 4] = std::array::from_fn(score);
        for key in (4..SIDE).step_by(4) {
            several = std::array::from_fn(|at| _mm512_max_ps(several[at], score(key + at)));
        }
        let [a, b, c, d] = several;
        let largest = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
        // SAFETY: there are 32 lanes.
        unsafe {
            let place = maxima.as_mut_ptr().add(lanes);
            _mm512_storeu_ps(place, _mm512_max_ps(largest, _mm512_loadu_ps(place)));
        }
    }
}

/// Merges the maxima of a step's scores into `lanes`.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn exponents(maxima: &[f32; LANES], scale: f32, lanes: &mut SoftmaxLanes) -> Exponents {
    Exponents {
        references: vector::raise_lanes::<LANES, true>(maxima, scale, lanes),
        // Keep a very large scale finite in base 2 as well: 0 · ∞ would be NaN.
        scale: (scale * std::f32::consts::LOG2_E).min(f32::MAX),
    }
}

/// Adds a step's sums to those of `lanes`.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) fn add_sums(sums: &[f32; LANES], lanes: &mut SoftmaxLanes) {
    for ((sum, more), rescale) in lanes.sum.iter_mut().zip(sums).zip(lanes.rescale) {
        *sum = sum.mul_add(rescale, *more);
    }
}

/// # Safety
///
/// `weights` holds `PARTS` chunks.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) unsafe fn weigh<'a, const PARTS: usize>(
    scores: &[f32; SIDE * SIDE],
    exponents: &Exponents,
    sums: &mut [f32; LANES],
    weights: &mut [u32],
    mut products: impl Iterator<Item = Product<'a>>,
    steps: usize,
) {
    const PAIRS: usize = SIDE / 2;
    let scale = _mm512_set1_ps(exponents.scale);
    let load = |values: *const f32| {
        // SAFETY: every array loaded here has 32 lanes.
        unsafe { [_mm512_loadu_ps(values), _mm512_loadu_ps(values.add(TILE))] }
    };
    let references = load(exponents.references.as_ptr());
    let mut totals = load(sums.as_ptr());
    let mut product = products.next();
    let mut due = 0;
    for pair in 0..PAIRS {
        due += steps;
        while due >= PAIRS
            && let Some(current) = &mut product
        {
            current.advance();
            if current.is_done() {
                product = products.next();
            }
            due -= PAIRS;
        }
        let scores = [2 * pair, 2 * pair + 1].map(|key| load(scores[key * SIDE..].as_ptr()));
        for half in 0..2 {
            let mut rest = scores.map(|scores| {
                let exponent = _mm512_mul_ps(_mm512_sub_ps(scores[half], references[half]), scale);
                let weight = exp2::<PARTS>(exponent);
                if PARTS == 2 { round(weight) } else { weight }
            });
            totals[half] = _mm512_add_ps(totals[half], _mm512_add_ps(rest[0], rest[1]));
            for part in 0..PARTS {
                let place = part * CHUNK + half * TILE * TILE + pair * TILE;
                // SAFETY: within the part's chunk.
                unsafe {
                    let words = weights.as_mut_ptr().add(place);
                    _mm512_storeu_si512(words.cast(), upper_halves(rest[0], rest[1]));
                }
                rest = rest.map(|rest| _mm512_sub_ps(rest, cut(rest)));
            }
        }
    }
    for (total, sums) in totals.into_iter().zip(sums.as_chunks_mut::<TILE>().0) {
        // SAFETY: sixteen lanes.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), total) };
    }
}

/// Rounds to the nearest value with sixteen significant bits, which two parts represent; halves away from zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn round(values: __m512) -> __m512 {
    let bits = _mm512_add_epi32(_mm512_castps_si512(values), _mm512_set1_epi32(0x80));
    _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-0x100)))
}

/// Drops the bits that bf16 lacks. The result has eight significant bits; the difference has eight fewer than the
/// value.
#[inline]
#[target_feature(enable = "avx512f")]
fn cut(values: __m512) -> __m512 {
    _mm512_castsi512_ps(_mm512_and_si512(
        _mm512_castps_si512(values),
        _mm512_set1_epi32(-0x1_0000),
    ))
}

/// Packs pairs of values [`cut`] to bf16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn upper_halves(first: __m512, second: __m512) -> __m512i {
    _mm512_mask_blend_epi16(
        0xAAAA_AAAA,
        _mm512_srli_epi32::<16>(_mm512_castps_si512(first)),
        _mm512_castps_si512(second),
    )
}

/// `2ˣ` for `x ≤ 0`, including −∞: `2ᶠ` by a polynomial, where the fraction `0 ≤ f < 1` is the distance of `x` from the
/// integer below. The polynomials are 1 at 0 and minimise the largest relative error: 3·10⁻⁶ for weights that are
/// rounded to sixteen bits, 1.5·10⁻⁷ for exact ones.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn exp2<const PARTS: usize>(x: __m512) -> __m512 {
    const SHORT: [f32; 5] = [1.342_668_4e-2, 5.224_247_3e-2, 2.412_802e-1, 6.930_448_4e-1, 1.0];
    const LONG: [f32; 6] = [
        1.867_13e-3,
        9.017_031e-3,
        5.579_991_3e-2,
        2.401_644_4e-1,
        6.931_513e-1,
        1.0,
    ];
    let (first, coefficients): (f32, &[f32]) = if PARTS == 2 {
        (SHORT[0], &SHORT[1..])
    } else {
        (LONG[0], &LONG[1..])
    };
    let f = _mm512_reduce_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x);
    let mut polynomial = _mm512_set1_ps(first);
    for coefficient in coefficients {
        polynomial = _mm512_fmadd_ps(polynomial, f, _mm512_set1_ps(*coefficient));
    }
    // Scales by the integer below x.
    _mm512_scalef_ps(polynomial, x)
}
