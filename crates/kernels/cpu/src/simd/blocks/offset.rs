//! Constants for x86, whose instructions multiply unsigned by signed bytes.
//!
//! Rows are stored with an offset that makes them unsigned. A column's dots start from the negated contribution of that
//! offset.

use super::DOUBLED;

/// The offset added to the values of rows.
pub(super) const OFFSET: i8 = 12;

/// [`DOUBLED`] plus [`OFFSET`].
pub(super) const DOUBLED_OFFSET: [i8; 16] = {
    let mut table = DOUBLED;
    let mut code = 0;
    while code < 16 {
        table[code] += OFFSET;
        code += 1;
    }
    table
};

/// Widening an e4m3 code with its sign to 16 bits and shifting it by this amount puts exponent and mantissa at f16's
/// positions. f16's bias is 8 larger, so the result is 2^−8 times the scale. Scales that are subnormal in e4m3 are
/// subnormal in f16 too; the conversion of f16 to f32 is exact and, unlike arithmetic on subnormal f32, not slower for
/// them.
pub(super) const HALF_SHIFT: i32 = 7;

/// Keeps sign, exponent and mantissa of that f16, without the copies of the sign that widening leaves.
pub(super) const HALF_MASK: i16 = 0xBF80_u16.cast_signed();

/// Dots are four times the true value, and scales 2^−8 times.
pub(super) const UNIT: f32 = 65536.0 / 4.0;
