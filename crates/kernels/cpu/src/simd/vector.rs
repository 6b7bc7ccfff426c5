//! Loops that are written once and compiled for each instruction set.
//!
//! Each function is `inline(always)`, so it is compiled with the features of its caller. `FMA` says whether those
//! features include a fused multiply-add: without one, `mul_add` would call a library function.

use super::{LANES, SoftmaxLanes};

/// One step of the online softmax on a k-major panel of raw scores, `W` queries wide (Milakov and Gimelshein,
/// "Online normalizer calculation for softmax", 2018).
///
/// The maximum is taken of raw scores and subtracted before the scale is applied, so that a large scale sends exponents
/// to −∞ and never to ∞ − ∞. A lane that has seen only −∞ keeps sum 0.
///
/// `C` scores, a whole number of rows of `W`, are processed at a time: compilers do not vectorise a loop over `W` alone
/// if `W` is shorter than a vector or no multiple of it.
#[inline(always)]
pub(super) fn softmax<const W: usize, const C: usize, const FMA: bool>(
    panel: &mut [f32],
    scale: f32,
    lanes: &mut SoftmaxLanes,
) {
    let references = raise::<W, C, FMA>(panel, scale, lanes);
    let (chunks, tail) = panel.as_chunks_mut::<C>();
    let mut last = [f32::NEG_INFINITY; C];
    last[..tail.len()].copy_from_slice(tail);
    let mut sums = [0.0_f32; C];
    for chunk in chunks {
        exponentiate::<C, FMA>(chunk, &references, scale, &mut sums);
    }
    exponentiate::<C, FMA>(&mut last, &references, scale, &mut sums);
    tail.copy_from_slice(&last[..tail.len()]);
    for lane in 0..W {
        let sum = sums.iter().skip(lane).step_by(W).sum::<f32>();
        lanes.sum[lane] = multiply_add::<FMA>(lanes.sum[lane], lanes.rescale[lane], sum);
    }
}

/// Updates the maxima of `lanes` with the raw scores of `panel`, and sets the factor for earlier sums. Returns the
/// value to subtract from each of `C` scores: their lane's maximum, or 0 if that is −∞.
#[inline(always)]
fn raise<const W: usize, const C: usize, const FMA: bool>(
    panel: &[f32],
    scale: f32,
    lanes: &mut SoftmaxLanes,
) -> [f32; C] {
    const { assert!(C.is_multiple_of(W) && W <= LANES) };
    let (chunks, tail) = panel.as_chunks::<C>();
    let mut maxima = [f32::NEG_INFINITY; C];
    maxima[..tail.len()].copy_from_slice(tail);
    for chunk in chunks {
        for index in 0..C {
            maxima[index] = if chunk[index] > maxima[index] {
                chunk[index]
            } else {
                maxima[index]
            };
        }
    }
    let maxima = std::array::from_fn(|lane| {
        let of_lane = maxima.iter().skip(lane).step_by(W);
        of_lane.fold(f32::NEG_INFINITY, |largest, score| score.max(largest))
    });
    let references = raise_lanes::<W, FMA>(&maxima, scale, lanes);
    std::array::from_fn(|index| references[index % W])
}

/// Like [`raise`], from maxima of raw scores, one lane each.
#[inline(always)]
pub(super) fn raise_lanes<const W: usize, const FMA: bool>(
    maxima: &[f32; W],
    scale: f32,
    lanes: &mut SoftmaxLanes,
) -> [f32; W] {
    std::array::from_fn(|lane| {
        let before = lanes.maximum[lane];
        let maximum = maxima[lane].max(before);
        let reference = if maximum == f32::NEG_INFINITY {
            0.0
        } else {
            maximum
        };
        lanes.rescale[lane] = exp_nonpositive::<FMA>((before - reference) * scale);
        lanes.maximum[lane] = maximum;
        reference
    })
}

/// Replaces scores by `exp((score − reference) · scale)` and adds them to `sums`.
#[inline(always)]
fn exponentiate<const C: usize, const FMA: bool>(
    scores: &mut [f32; C],
    references: &[f32; C],
    scale: f32,
    sums: &mut [f32; C],
) {
    for index in 0..C {
        scores[index] = exp_nonpositive::<FMA>((scores[index] - references[index]) * scale);
        sums[index] += scores[index];
    }
}

/// Converts e4m3 codes that are not NaN: their bits, moved to an f32's position, give a value that is 2¹²⁰ too small,
/// also for subnormals.
#[inline(always)]
pub(super) fn widen(codes: &[u8], values: &mut [f32]) {
    const UP: f32 = f32::from_bits((127 + 120) << 23);
    for (value, code) in values.iter_mut().zip(codes) {
        let code = u32::from(*code);
        *value = f32::from_bits((code & 0x80) << 24 | (code & 0x7F) << 20) * UP;
    }
}

/// Transposes rows of `C` sums, at most [`LANES`] of them, into `C` rows that begin `LANES` values apart.
#[inline(always)]
pub(super) fn turn<const C: usize>(block: &[f32], turned: &mut [f32; LANES * LANES]) {
    for (column, lanes) in turned.chunks_exact_mut(LANES).take(C).enumerate() {
        for (lane, row) in lanes.iter_mut().zip(block.as_chunks::<C>().0) {
            *lane = row[column];
        }
    }
}

/// `out = sums · scale` in f64.
#[inline(always)]
pub(super) fn scale(sums: &[f32], scale: f64, out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (f64::from(*sum) * scale) as f32;
    }
}

/// See [`Instructions::halve`](super::Instructions::halve).
pub(super) fn halve(values: &[f32], bytes: &mut [u8]) {
    for (bytes, value) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(values) {
        *bytes = half::f16::from_f32(*value).to_le_bytes();
    }
}

/// `out = silu(gate · scales[0]) · (up · scales[1])`: the sigmoid in f32, the products in f64.
#[inline(always)]
pub(super) fn swiglu<const FMA: bool>(gate: &[f32], up: &[f32], scales: [f64; 2], out: &mut [f32]) {
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        let gate = f64::from(*gate) * scales[0];
        let up = f64::from(*up) * scales[1];
        *out = (gate * f64::from(sigmoid::<FMA>(gate as f32)) * up) as f32;
    }
}

/// `1 / (1 + e⁻ˣ)`, through the exponential of −|x| so that nothing overflows.
#[inline(always)]
fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let power = exp_nonpositive::<FMA>(-x.abs());
    let numerator = if x >= 0.0 { 1.0 } else { power };
    numerator / (1.0 + power)
}

/// `eˣ` for `x ≤ 0`, to within 3·10⁻⁷ of the value; 0 below −87, where f32 would turn subnormal.
///
/// `x = n·ln 2 + r` with `|r| ≤ ln 2 / 2` (ln 2 in two parts after Cody and Waite, so that `n·ln 2` is exact in
/// the first), then the Taylor polynomial of degree 7, whose remainder is under 6·10⁻⁹ there.
#[inline(always)]
pub(super) fn exp_nonpositive<const FMA: bool>(x: f32) -> f32 {
    // Adding 1.5 · 2²³ leaves the nearest integer in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = multiply_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = multiply_add::<FMA>(n, -LN_2_LOW, multiply_add::<FMA>(n, -LN_2_HIGH, x));
    let mut polynomial = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        polynomial = multiply_add::<FMA>(polynomial, r, coefficient);
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    if x < -87.0 { 0.0 } else { polynomial * power }
}

#[inline(always)]
pub(super) fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
