//! Rounding the oracle's f64 to an output's format.

use half::{bf16, f16};

use crate::OutputFormat;

impl OutputFormat {
    /// `value` rounded once to this format, to nearest, ties to even; over the range, to infinity.
    ///
    /// `half` 2.7 drops the low 32 bits of an f64 before it rounds to f16, and going by way of a nearest f32 rounds
    /// twice: both take a value just over a tie for the tie.
    pub fn round(self, value: f64) -> f32 {
        match self {
            Self::F32 => value as f32,
            Self::F16 => f16::from_f32(to_odd(value)).to_f32(),
            Self::Bf16 => bf16::from_f32(to_odd(value)).to_f32(),
        }
    }
}

/// `value` as the f32 whose last bit is odd wherever it is not exact. Rounding that to a format at least two bits
/// narrower equals rounding `value` (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest) == value || value.is_nan();
    if exact || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The nearest is even, so its odd neighbour lies on the other side of the value.
    if f64::from(nearest).abs() < value.abs() {
        f32::from_bits(nearest.to_bits() + 1)
    } else {
        f32::from_bits(nearest.to_bits() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_just_over_a_tie_rounds_up() {
        // 1 + 2⁻¹¹ is halfway between 1 and the next f16; 2⁻⁵⁰ more decides.
        let tie = 1.0 + 2f64.powi(-11);
        let next = 1.0 + 2f32.powi(-10);
        assert_eq!(OutputFormat::F16.round(tie), 1.0);
        assert_eq!(OutputFormat::F16.round(tie + 2f64.powi(-50)), next);
        assert_eq!(OutputFormat::F16.round(-tie - 2f64.powi(-50)), -next);
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!(OutputFormat::Bf16.round(tie), 1.0);
        assert_eq!(
            OutputFormat::Bf16.round(tie + 2f64.powi(-50)),
            1.0 + 2f32.powi(-7)
        );
    }

    #[test]
    fn the_ends_of_the_range_are_ieee_s() {
        assert_eq!(OutputFormat::F16.round(65519.99), 65504.0);
        assert_eq!(OutputFormat::F16.round(65520.0), f32::INFINITY);
        assert_eq!(OutputFormat::F16.round(-1e300), f32::NEG_INFINITY);
        assert_eq!(OutputFormat::Bf16.round(1e300), f32::INFINITY);
        assert_eq!(OutputFormat::F16.round(2f64.powi(-25)), 0.0);
        assert_eq!(OutputFormat::F16.round(2f64.powi(-25) * 1.000001), 2f32.powi(-24));
        assert_eq!(OutputFormat::F16.round(1e-300), 0.0);
        assert_eq!(OutputFormat::F16.round(-0.0).to_bits(), (-0.0f32).to_bits());
        assert!(OutputFormat::F16.round(f64::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn no_f16_is_nearer(value in -70000.0f64..70000.0) {
            let rounded = OutputFormat::F16.round(value);
            prop_assume!(rounded.is_finite());
            let bits = f16::from_f32(rounded).to_bits();
            let error = (f64::from(rounded) - value).abs();
            for neighbour in [bits.wrapping_sub(1), bits + 1].map(f16::from_bits) {
                prop_assert!(!neighbour.is_finite() || error <= (neighbour.to_f64() - value).abs());
            }
        }
    }
}
