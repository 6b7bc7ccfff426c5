//! Loops that are written once and compiled for each instruction set.
//!
//! Each is `inline(always)`, so that it takes on the features of the function it is called from. `FMA` says whether
//! those features include a fused multiply-add: without one, `mul_add` would call a library function.

use super::{LANES, SoftmaxLanes};

/// One step of the online softmax on a k-major panel of raw scores, `W` queries wide (Milakov and Gimelshein,
/// "Online normalizer calculation for softmax", 2018).
///
/// The maximum is taken of raw scores and subtracted before the scale is applied, so that a large scale sends
/// exponents to −∞ and never to ∞ − ∞. A lane that has seen only −∞ keeps sum 0.
#[inline(always)]
pub(super) fn softmax<const W: usize, const FMA: bool>(
    panel: &mut [f32],
    scale: f32,
    lanes: &mut SoftmaxLanes,
) {
    let (scores, _) = panel.as_chunks_mut::<W>();
    let mut maximum = [f32::NEG_INFINITY; W];
    maximum.copy_from_slice(&lanes.maximum[..W]);
    for row in &*scores {
        for lane in 0..W {
            maximum[lane] = if row[lane] > maximum[lane] {
                row[lane]
            } else {
                maximum[lane]
            };
        }
    }
    let mut reference = [0.0_f32; W];
    for lane in 0..W {
        reference[lane] = if maximum[lane] == f32::NEG_INFINITY {
            0.0
        } else {
            maximum[lane]
        };
        lanes.rescale[lane] = exp_nonpositive::<FMA>((lanes.maximum[lane] - reference[lane]) * scale);
    }
    let mut sum = [0.0_f32; W];
    for row in scores {
        for lane in 0..W {
            row[lane] = exp_nonpositive::<FMA>((row[lane] - reference[lane]) * scale);
            sum[lane] += row[lane];
        }
    }
    for lane in 0..W {
        lanes.sum[lane] = multiply_add::<FMA>(lanes.sum[lane], lanes.rescale[lane], sum[lane]);
        lanes.maximum[lane] = maximum[lane];
    }
}

/// `out = sums · scale` in f64.
#[inline(always)]
pub(super) fn scale(sums: &[f32], scale: f64, out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = (f64::from(*sum) * scale) as f32;
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
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

const _: () = assert!(LANES >= 32, "softmax lanes hold the widest panel");
