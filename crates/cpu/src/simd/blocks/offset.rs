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

/// What turns the bits of an e4m3 magnitude, moved to the place of f32's exponent and mantissa, into half its value: the
/// bias of f32 less that of e4m3, and one less for the doubling of one operand. Subnormal scales come out right, too.
pub(super) const HALF_SCALE: f32 = f32::from_bits((127 + 127 - 7 - 1) << 23);
