//! Constants of x86, whose instructions multiply unsigned by signed bytes.
//!
//! Rows are stored with an offset that makes them unsigned; a column's dots start from what that offset will have added,
//! negated.

/// What is added to the values of rows.
pub(super) const OFFSET: i8 = 12;

/// Twice the value of each e2m1 code.
pub(super) const DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The same, plus [`OFFSET`].
pub(super) const DOUBLED_OFFSET: [i8; 16] = {
    let mut table = DOUBLED;
    let mut code = 0;
    while code < 16 {
        table[code] += OFFSET;
        code += 1;
    }
    table
};

/// What makes f32 bits of half an e4m3 value out of its magnitude, moved to the place of exponent and mantissa: the bias of
/// f32 less that of e4m3, and one less for the doubling of one operand.
pub(super) const HALF_BIAS: i32 = (127 - 7 - 1) << 23;

/// Codes of e4m3 under this have no leading one: with the smallest exponent they are that much too large. No f32 is
/// subnormal on the way, which processors are slow at.
pub(super) const SUBNORMALS: i32 = 8;

/// Half the smallest normal value of e4m3.
pub(super) const HALF_SMALLEST: f32 = 1.0 / 128.0;
