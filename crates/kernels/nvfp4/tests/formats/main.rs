//! Tests of the number formats: one program, since linking one for each file takes longer than the tests.

mod quantise;
mod tables;
