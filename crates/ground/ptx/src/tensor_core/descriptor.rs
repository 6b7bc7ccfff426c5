//! The instruction descriptor of products of the kind `mxf4nvf4` (PTX ISA, "Instruction descriptor").

use crate::fault::Problem;
use crate::tensor_core::instruction::Group;

/// Most columns of the second operand.
const MAX_COLUMNS: u64 = 256;

/// What an instruction descriptor says of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Description {
    /// Columns of the second operand and of the sums (N).
    pub columns: usize,
    /// Whether one of the operands is negated, but not both.
    pub negates: bool,
}

impl Description {
    /// # Errors
    /// If a field has a value that the ISA does not allow for this kind with scales of ue4m3, or that is not understood here.
    pub fn new(bits: u32, group: Group) -> Result<Self, Problem> {
        let field = |first: u32, count: u32| u64::from(bits) >> first & ((1 << count) - 1);
        let is = |first: u32, count: u32, what: &str, expected: u64| {
            let found = field(first, count);
            match found == expected {
                true => Ok(()),
                false => Err(format!(
                    "instruction descriptor {bits:#010x}: bits {first} to {} hold {found}, and {what} is {expected} here",
                    first + count - 1
                )),
            }
        };
        is(0, 2, "the reserved field", 0)?;
        is(2, 1, "the sparsity", 0)?;
        is(3, 1, "the reserved field", 0)?;
        is(4, 2, "the scale factor id of B with four scales a row", 0)?;
        is(6, 1, "the reserved field", 0)?;
        is(7, 3, "the type of A (e2m1)", 1)?;
        is(10, 2, "the type of B (e2m1)", 1)?;
        is(12, 1, "the reserved field", 0)?;
        is(15, 2, "the transposition of A and B", 0)?;
        is(23, 1, "the type of the scales (ue4m3)", 0)?;
        is(24, 3, "the reserved field", 0)?;
        // The rows of the first operand (M), in units of 128. The ISA has 128 rows for a pair too, in another layout.
        let (rows, step) = match group {
            Group::One => (1, 8),
            Group::Pair => (2, 16),
        };
        is(27, 2, "the number of rows of A in units of 128", rows)?;
        is(29, 2, "the scale factor id of A with four scales a row", 0)?;
        is(31, 1, "the depth (0 for 64)", 0)?;
        let columns = 8 * field(17, 6);
        if columns == 0 || columns > MAX_COLUMNS || !columns.is_multiple_of(step) {
            return Err(format!(
                "instruction descriptor {bits:#010x}: {columns} columns of B, where multiples of {step} up to {MAX_COLUMNS} are possible"
            ));
        }
        Ok(Self {
            columns: columns as usize,
            negates: field(13, 1) != field(14, 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_manual_has_them() {
        let bits = 1 << 7 | 1 << 10 | (256 >> 3) << 17 | (128 >> 7) << 27;
        let expected = Description {
            columns: 256,
            negates: false,
        };
        assert_eq!(Description::new(bits, Group::One).unwrap(), expected);
        assert!(Description::new(bits | 1 << 13, Group::One).unwrap().negates);
        assert!(!Description::new(bits | 3 << 13, Group::One).unwrap().negates);
        assert_eq!(Description::new(bits + (1 << 27), Group::Pair).unwrap(), expected);
        for (wrong, why) in [
            (bits ^ 5 << 7, "bits 7 to 9 hold 4, and the type of A (e2m1) is 1"),
            (bits | 1 << 23, "ue4m3"),
            (bits + (1 << 17), "264 columns of B"),
            (bits + (1 << 27), "rows of A"),
            (bits | 1 << 31, "depth"),
            (bits | 2 << 29, "scale factor id of A"),
        ] {
            let problem = Description::new(wrong, Group::One).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        let narrow = 1 << 7 | 1 << 10 | 1 << 17;
        assert_eq!(Description::new(narrow | 1 << 27, Group::One).unwrap().columns, 8);
        let problem = Description::new(narrow | 2 << 27, Group::Pair).unwrap_err();
        assert!(problem.contains("multiples of 16"), "{problem}");
    }
}
