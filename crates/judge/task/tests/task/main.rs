//! Tests of the error measures and of the rules for a right result: one program, since linking one for each file takes longer
//! than the tests.

mod expected_specials;
mod measures;
mod suited_rules;
