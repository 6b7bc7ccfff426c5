#![expect(clippy::unwrap_used, reason = "tests")]
//! Decoding and encoding compared with tables made with PyPI `ml_dtypes` (`scripts/make_tables.py`).

use gauntlet_tensors::{e2m1, e4m3};

/// The two hexadecimal columns of a table.
fn rows(table: &str) -> impl Iterator<Item = (u32, u32)> {
    table.lines().map(|line| {
        let (left, right) = line.split_once(',').unwrap();
        (
            u32::from_str_radix(left, 16).unwrap(),
            u32::from_str_radix(right, 16).unwrap(),
        )
    })
}

fn assert_decodes(table: &str, codes: usize, decode: impl Fn(u8) -> f32) {
    assert_eq!(rows(table).count(), codes);
    for (code, bits) in rows(table) {
        let (found, expected) = (decode(code as u8), f32::from_bits(bits));
        // NaN payloads differ between implementations and have no meaning.
        assert!(
            found.to_bits() == bits || (found.is_nan() && expected.is_nan()),
            "code {code:#04x}: {found} instead of {expected}"
        );
    }
}

fn assert_encodes(table: &str, encode: impl Fn(f32) -> u8) {
    assert!(rows(table).count() > 1000);
    for (bits, code) in rows(table) {
        let value = f32::from_bits(bits);
        assert_eq!(u32::from(encode(value)), code, "{value:e} ({bits:#010x})");
    }
}

#[test]
fn e2m1_decodes_as_the_table() {
    assert_decodes(include_str!("../data/e2m1_decode.csv"), 16, e2m1::decode);
}

#[test]
fn e2m1_encodes_as_the_table() {
    assert_encodes(include_str!("../data/e2m1_encode.csv"), |value| {
        e2m1::encode(value)
    });
}

#[test]
fn e4m3_decodes_as_the_table() {
    assert_decodes(include_str!("../data/e4m3_decode.csv"), 256, e4m3::decode);
}

#[test]
fn e4m3_encodes_as_the_table() {
    assert_encodes(include_str!("../data/e4m3_encode.csv"), |value| {
        e4m3::encode(value)
    });
}
