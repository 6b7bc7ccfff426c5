//! Constants of x86, whose instructions multiply unsigned by signed bytes.
//!
//! Rows are stored with an offset that makes them unsigned; a column's dots start from what that offset will have added,
//! negated.

use super::DOUBLED;

/// What is added to the values of rows.
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

/// A code of e4m3, widened with its sign to 16 bits and shifted by this, has exponent and mantissa where f16 has them. f16's
/// bias is 8 more, so it stands for 2^−8 times the scale; scales that are subnormal in e4m3 are so in f16, whose conversion to
/// f32 is exact and, unlike arithmetic on subnormal f32, no slower for them.
pub(super) const HALF_SHIFT: i32 = 7;

/// Sign, exponent and mantissa of that f16, without the copies of the sign that widening leaves.
pub(super) const HALF_MASK: i16 = 0xBF80_u16.cast_signed();

/// Dots are four times what they stand for, and scales 2^−8 times.
pub(super) const UNIT: f32 = 65536.0 / 4.0;
