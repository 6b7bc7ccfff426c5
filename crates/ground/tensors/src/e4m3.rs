//! e4m3 ("fn"): one sign bit, four exponent bits with bias 7, three mantissa bits; the largest finite value is 448,
//! codes 0x7F and 0xFF are NaN, there is no infinity, and the subnormal step is 2⁻⁹ (OCP 8-bit Floating Point 1.0).

use float8::F8E4M3;

/// The largest magnitude.
pub const MAX: f32 = 448.0;

/// The smallest positive value, 2⁻⁹, which is also the step of the subnormals.
pub const MIN_SUBNORMAL: f32 = 1.0 / 512.0;

/// The value of each code.
///
/// A table look-up is several times cheaper than the bit operations of `float8`, and the reference decodes many values.
pub const VALUES: [f32; 256] = {
    let mut values = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        values[code] = F8E4M3::from_bits(code as u8).to_f32();
        code += 1;
    }
    values
};

/// The value of `code`.
#[inline]
pub fn decode(code: u8) -> f32 {
    VALUES[usize::from(code)]
}

/// The code nearest to `value`, ties to the even code; magnitudes over [`MAX`], infinity included, saturated;
/// the sign of zero kept; NaN to NaN of the same sign.
pub fn encode(value: impl Into<f64>) -> u8 {
    F8E4M3::from_f64(value.into()).to_bits()
}

/// Whether `code` is one of the two NaNs.
#[inline]
pub fn is_nan(code: u8) -> bool {
    code & 0x7F == 0x7F
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_survives_the_round_trip() {
        for code in (0..=255).filter(|&code| !is_nan(code)) {
            assert_eq!(encode(decode(code)), code, "{code:#04x}");
        }
    }

    #[test]
    fn exactly_two_codes_are_nan() {
        let nans: Vec<u8> = (0..=255).filter(|&code| decode(code).is_nan()).collect();
        assert_eq!(nans, [0x7F, 0xFF]);
        assert!(nans.into_iter().all(is_nan));
        assert_eq!(encode(f32::NAN) & 0x7F, 0x7F);
    }

    #[test]
    fn overflow_saturates() {
        // 464 is halfway to the 480 that the format lacks.
        for value in [448.0, 464.0, 464.1, 1e30, f64::INFINITY] {
            assert_eq!(encode(value), 0x7E, "{value}");
            assert_eq!(encode(-value), 0xFE, "-{value}");
        }
    }

    #[test]
    fn ties_go_to_the_even_code() {
        assert_eq!(encode(MIN_SUBNORMAL / 2.0), 0x00);
        assert_eq!(encode(MIN_SUBNORMAL * 1.5), 0x02);
        for code in 0..0x7E_u8 {
            let midpoint = (decode(code) + decode(code + 1)) / 2.0;
            assert_eq!(
                encode(midpoint),
                code + code % 2,
                "between {code:#04x} and its successor"
            );
        }
    }

    #[test]
    fn zero_keeps_its_sign() {
        assert_eq!(encode(0.0), 0x00);
        assert_eq!(encode(-0.0), 0x80);
        assert_eq!(encode(-1e-30), 0x80);
    }

    proptest! {
        #[test]
        fn encoding_is_monotone(first in -500.0f32..500.0, second in -500.0f32..500.0) {
            let (low, high) = if first <= second { (first, second) } else { (second, first) };
            prop_assert!(decode(encode(low)) <= decode(encode(high)));
        }
    }
}
