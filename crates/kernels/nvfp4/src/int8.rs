//! Linear int8: the largest magnitude of a group of values is divided into equal steps, and a code counts them.
//!
//! An encoder and a decoder with different numbers of steps disagree by a factor. The maximum error does not show this:
//! every value is shifted outward, or inward, by as little as half a step.

/// Steps from zero to the largest magnitude. The code −128 is never used, so that both signs have the same range.
pub const STEPS: f32 = 127.0;

/// The steps of the encoder of a recorded attention kernel, which decoded with [`STEPS`]: all decoded values were 127.5
/// / 127 times the encoded ones, or 0.4 % too large.
pub const RECORDED_ENCODER_STEPS: f32 = 127.5;

/// The code of `value` with `steps` steps to `largest`, ties to the even code, saturating at ±127; 0 if `largest` is 0
/// or NaN.
pub fn encode(value: f32, largest: f32, steps: f32) -> i8 {
    if largest == 0.0 {
        return 0;
    }
    let counted = f64::from(value) * f64::from(steps) / f64::from(largest);
    // The cast saturates, and turns NaN into 0.
    counted.round_ties_even().clamp(-127.0, 127.0) as i8
}

/// The value of one step of a decoder: `largest / steps`; codes are multiplied by it.
pub fn step(largest: f32, steps: f32) -> f32 {
    largest / steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_round_trip() {
        let step = step(3.5, STEPS);
        for code in -127..=127_i8 {
            assert_eq!(encode(f32::from(code) * step, 3.5, STEPS), code);
        }
    }

    #[test]
    fn an_error_is_at_most_half_a_step() {
        for number in -1000..=1000 {
            let value = number as f32 / 1000.0;
            let back = f32::from(encode(value, 1.0, STEPS)) * step(1.0, STEPS);
            assert!((back - value).abs() <= 0.5 / STEPS + 1e-7, "{value} {back}");
        }
    }

    #[test]
    fn what_has_no_code_saturates() {
        assert_eq!(encode(f32::INFINITY, 1.0, STEPS), 127);
        assert_eq!(encode(-2.0, 1.0, STEPS), -127);
        assert_eq!(encode(1.0, 1.0, RECORDED_ENCODER_STEPS), 127);
        assert_eq!(encode(f32::NAN, 1.0, STEPS), 0);
        assert_eq!(encode(0.0, 0.0, STEPS), 0);
    }

    /// The mean error away from zero: near 0 for the matched pair, 0.5 / 127 of the mean magnitude for the other.
    #[test]
    fn a_decoder_of_other_steps_draws_every_value_outward() {
        let outward = |steps: f32| {
            let count = 100_000;
            // Evenly spread over (−0.9, 0.9), where nothing saturates, by multiples of the golden ratio.
            let values = (0..count).map(|at| (f64::from(at) * 0.618_033_988_749_895).fract() * 1.8 - 0.9);
            let errors = values.map(|value| {
                let back = f32::from(encode(value as f32, 1.0, steps)) * step(1.0, STEPS);
                (f64::from(back) - value) * value.signum()
            });
            errors.sum::<f64>() / f64::from(count)
        };
        assert!(outward(STEPS).abs() < 2e-5, "{}", outward(STEPS));
        let expected = 0.45 * 0.5 / 127.0;
        let found = outward(RECORDED_ENCODER_STEPS);
        assert!((found - expected).abs() < 2e-5, "{found} for {expected}");
    }
}
