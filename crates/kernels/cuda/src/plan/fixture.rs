//! What the tests of all plans share.

use bytemuck::Pod;
use gauntlet_problems::{Form, GroupedGemm};
use proptest::prelude::*;

use super::{Addresses, Target, Variant};

/// Multiprocessors of a whole Hopper.
pub const PROCESSORS: u32 = 132;

/// A whole Hopper.
pub fn hopper() -> Target {
    Target::hopper(PROCESSORS)
}

/// Where a call's memory lies, far enough apart that no table reaches into another.
pub const ADDRESSES: Addresses = Addresses {
    operands: [1 << 32, 8 << 32, 9 << 32],
    scales: [2 << 32, 10 << 32, 11 << 32],
    factors: [1.0; 3],
    output: 3 << 32,
    tables: 4 << 32,
    maps: 5 << 32,
    workspace: 6 << 32,
    counters: 7 << 32,
    rows: 0,
};

/// Groups of these M, N and K.
pub fn gemm(shapes: &[[usize; 3]], form: Form) -> GroupedGemm {
    GroupedGemm::new(form, shapes.iter().copied())
}

/// Groups of up to `most_rows` weight rows, most of them with few tokens or none.
pub fn shapes(most_rows: usize) -> impl Strategy<Value = Vec<[usize; 3]>> {
    let m = prop_oneof![4 => 0usize..300, 1 => 300usize..3000, 1 => 0usize..9];
    let shape = (m, 1..=most_rows, 1usize..160).prop_map(|(m, n, sixteenths)| [m, n, 16 * sixteenths]);
    proptest::collection::vec(shape, 1..9)
}

/// Checks the definitions of a variant, in the order of their names.
pub fn assert_defines(variant: &Variant, expected: &[(&str, &str)]) {
    let defines = variant
        .defines
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    assert!(defines.eq(expected.iter().copied()), "{:?}", variant.defines);
}

/// The entries of a table.
pub fn collect<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytes
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .collect()
}
