//! Tests of the interpreter on kernels written by hand: one program, since linking one for each file takes longer than the tests.

mod cluster;
mod launch;
mod ordinary;
mod tensor_core;
mod tensor_maps;
