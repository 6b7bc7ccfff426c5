//! Exponentials of scores, in parts that the tile unit multiplies.

use std::arch::x86_64::*;

use super::{CHUNK, SIDE, TILE};
use crate::simd::{LANES, SoftmaxLanes, vector};

/// # Safety
///
/// `weights` holds `PARTS` chunks for each 32 keys, begun ones too.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
pub(super) unsafe fn softmax<const PARTS: usize>(
    scores: &[f32],
    scale: f32,
    lanes: &mut SoftmaxLanes,
    weights: &mut [u32],
) {
    let references = vector::raise::<LANES, LANES, true>(scores, scale, lanes);
    // So large a scale is not infinite in base 2 either: 0 · ∞ would be NaN.
    let scale = _mm512_set1_ps((scale * std::f32::consts::LOG2_E).min(f32::MAX));
    let keys = scores.len() / SIDE;
    for half in 0..2 {
        // SAFETY: a row has 32 lanes.
        let reference = unsafe { _mm512_loadu_ps(references.as_ptr().add(TILE * half)) };
        let mut sum = _mm512_setzero_ps();
        let weigh = |key: usize| {
            if key >= keys {
                return _mm512_setzero_ps();
            }
            // SAFETY: the key is one of the scores'.
            let score = unsafe { _mm512_loadu_ps(scores.as_ptr().add(key * SIDE + TILE * half)) };
            let weight = exp2(_mm512_mul_ps(_mm512_sub_ps(score, reference), scale));
            if PARTS == 2 { round::<8>(weight) } else { weight }
        };
        for first in (0..keys.next_multiple_of(SIDE)).step_by(2) {
            let mut rest = [weigh(first), weigh(first + 1)];
            sum = _mm512_add_ps(sum, _mm512_add_ps(rest[0], rest[1]));
            let place = first / SIDE * PARTS * CHUNK + half * TILE * TILE + first % SIDE / 2 * TILE;
            for part in 0..PARTS {
                // The last part has so few bits left that it needs no rounding.
                let taken = if part + 1 < PARTS {
                    rest.map(|rest| round::<16>(rest))
                } else {
                    rest
                };
                rest = [_mm512_sub_ps(rest[0], taken[0]), _mm512_sub_ps(rest[1], taken[1])];
                // SAFETY: the chunk is one of those for which there is room.
                unsafe {
                    let words = weights.as_mut_ptr().add(place + part * CHUNK);
                    _mm512_storeu_si512(words.cast(), pairs(taken[0], taken[1]));
                }
            }
        }
        let mut sums = [0.0; TILE];
        // SAFETY: sixteen values.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), sum) };
        for (lane, sum) in sums.into_iter().enumerate() {
            let lane = TILE * half + lane;
            lanes.sum[lane] = lanes.sum[lane].mul_add(lanes.rescale[lane], sum);
        }
    }
}

/// Rounds to the nearest value whose low `BITS` bits are zero; halves away from zero.
#[inline]
#[target_feature(enable = "avx512f")]
fn round<const BITS: u32>(values: __m512) -> __m512 {
    let bits = _mm512_add_epi32(_mm512_castps_si512(values), _mm512_set1_epi32(1 << (BITS - 1)));
    _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-1 << BITS)))
}

/// Pairs of values that are exact in bf16.
#[inline]
#[target_feature(enable = "avx512f")]
fn pairs(first: __m512, second: __m512) -> __m512i {
    _mm512_or_si512(
        _mm512_srli_epi32::<16>(_mm512_castps_si512(first)),
        _mm512_castps_si512(second),
    )
}

/// `2ˣ` for `x ≤ 0`, −∞ too, to within 2·10⁻⁷ of the value: `x = n + f` with `|f| ≤ ½`, and the polynomial of Cephes'
/// `exp2f` for `2ᶠ`. Under 2⁻¹⁰⁰ it is 0, so that the last part of no weight is subnormal, and so inexact in bf16.
#[inline]
#[target_feature(enable = "avx512f")]
fn exp2(x: __m512) -> __m512 {
    let is_seen = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, _mm512_set1_ps(-100.0));
    let n = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
    let f = _mm512_sub_ps(x, n);
    let mut polynomial = _mm512_set1_ps(1.535_336_2e-4);
    for coefficient in [
        1.339_887_4e-3,
        9.618_437e-3,
        5.550_332_5e-2,
        2.402_264_8e-1,
        6.931_472e-1,
        1.0,
    ] {
        polynomial = _mm512_fmadd_ps(polynomial, f, _mm512_set1_ps(coefficient));
    }
    _mm512_maskz_scalef_ps(is_seen, polynomial, n)
}
