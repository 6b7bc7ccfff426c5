//! e2m1: one sign bit, two exponent bits, one mantissa bit; no infinity and no NaN (OCP Microscaling Formats 1.0).

/// The value of each code; bit 3 is the sign, so code 8 is −0.
pub const VALUES: [f32; 16] = [
    0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
];

/// The largest magnitude.
pub const MAX: f32 = 6.0;

/// The value of the low four bits of `code`; the high four are ignored.
#[inline]
pub const fn decode(code: u8) -> f32 {
    VALUES[(code & 0xF) as usize]
}

/// The code nearest to `value`, ties to the even code, magnitudes over [`MAX`] saturated, the sign of zero kept.
///
/// NaN has no code and becomes +6, as in `cvt.rn.satfinite.e2m1x2.f32` (PTX ISA, `cvt`).
pub fn encode(value: impl Into<f64>) -> u8 {
    let value = value.into();
    if value.is_nan() {
        return 7;
    }
    let magnitude = value.abs();
    // A tie goes to the even code, so a value must exceed the cut point under an odd code to reach it.
    let passed = [
        magnitude > 0.25,
        magnitude >= 0.75,
        magnitude > 1.25,
        magnitude >= 1.75,
        magnitude > 2.5,
        magnitude >= 3.5,
        magnitude > 5.0,
    ];
    let code: u8 = passed.into_iter().map(u8::from).sum();
    code | (u8::from(value.is_sign_negative()) << 3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_code_survives_the_round_trip() {
        for code in 0..16 {
            assert_eq!(encode(decode(code)), code);
        }
    }

    #[test]
    fn ties_go_to_the_even_code() {
        for (value, code) in [
            (0.25, 0),
            (0.75, 2),
            (1.25, 2),
            (1.75, 4),
            (2.5, 4),
            (3.5, 6),
            (5.0, 6),
        ] {
            assert_eq!(encode(value), code, "{value}");
            assert_eq!(encode(-value), code | 8, "-{value}");
        }
    }

    #[test]
    fn zero_keeps_its_sign_and_overflow_saturates() {
        assert_eq!(encode(0.0), 0);
        assert_eq!(encode(-0.0), 8);
        assert_eq!(encode(f32::INFINITY), 7);
        assert_eq!(encode(f32::NEG_INFINITY), 15);
        assert_eq!(encode(f32::NAN), 7);
    }

    proptest! {
        #[test]
        fn encoding_is_monotone(first in -8.0f32..8.0, second in -8.0f32..8.0) {
            let (low, high) = if first <= second { (first, second) } else { (second, first) };
            prop_assert!(decode(encode(low)) <= decode(encode(high)));
        }

        #[test]
        fn no_code_is_nearer(value in -6.0f32..6.0) {
            let error = (value - decode(encode(value))).abs();
            for code in 0..16 {
                prop_assert!(error <= (value - decode(code)).abs());
            }
        }
    }
}
