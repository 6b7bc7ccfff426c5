//! Rounding f64 to narrower formats.

/// Rounds `value` to f32 so that every inexact result has an odd last bit. Rounding the result to a format at least two
/// bits narrower equals rounding `value` (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
pub fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let exact = f64::from(nearest) == value || value.is_nan();
    if exact || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The nearest is even, so its odd neighbour is on the other side of the value.
    if f64::from(nearest).abs() < value.abs() {
        f32::from_bits(nearest.to_bits() + 1)
    } else {
        f32::from_bits(nearest.to_bits() - 1)
    }
}
