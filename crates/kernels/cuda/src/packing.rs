//! Weights prepared once, before any call.
//!
//! Kernels fetch weights by tensor maps, whose rows begin at multiples of 16 bytes. Those of scales do if K is a multiple of
//! 256. For other multiples of 16, [`pad`] fills rows up with zeros.
//!
//! [`pack`] repacks weights as schedules with `packing = "fragments"` take them. The values, their scales and their number do not change, so results are bit-identical; only the order of bytes
//! changes. K is cut into chunks of [`CHUNK`] values, and rows are padded with zeros to a multiple of [`ROWS`]:
//!
//! - values `[depth / 128, rows, 64]`: the part of a chunk that a block loads is contiguous.
//! - scales `[depth / 128, rows / 16, 8, 4, 2, 2]`: for rows g and g + 8 of sixteen, the two scales of each of the
//!   chunk's four quarters, so that a thread finds all of its scales in one word.
//!
//! [`pack_steps`] repacks weights for tokens of 16 bits on Hopper, for schedules with `packing = "steps"`; [`pack_as`] does what a
//! schedule asks for.

mod steps;

use gauntlet_nvfp4::BLOCK;
use gauntlet_problems::{Packing, TokenFormat};
use thiserror::Error;

pub use crate::plan::DEPTH_STEP;
pub use steps::pack_steps;

/// Rows are filled up to a multiple of this.
pub const ROWS: usize = 16;
/// Values of a chunk of the depth.
pub const CHUNK: usize = 128;
/// Bytes of a chunk of a row.
const VALUE_BYTES: usize = CHUNK / 2;
const SCALE_BYTES: usize = CHUNK / 16;

/// One matrix of weights as kernels read it; the function that made it says in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Values, half a byte each.
    pub values: Vec<u8>,
    /// Scales, a byte for 16 values.
    pub scales: Vec<u8>,
}

/// One matrix of weights with rows filled up to a multiple of [`DEPTH_STEP`] values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padded {
    /// Values, `[rows, padded / 2]` bytes.
    pub values: Vec<u8>,
    /// Scales, `[rows, padded / 16]` bytes.
    pub scales: Vec<u8>,
}

/// Why a matrix cannot be padded or repacked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackingError {
    /// Rows that are no whole number of blocks.
    #[error(
        "rows of {depth} values: one scale covers 16 values along a row; pad rows with zeros to {} values",
        depth.next_multiple_of(BLOCK)
    )]
    Depth {
        /// Values of a row.
        depth: usize,
    },
    /// Too few bytes, or too many.
    #[error("{found} bytes of {what} for {rows} rows of {depth} values; it takes {expected}")]
    Length {
        /// Values or scales.
        what: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Values of a row.
        depth: usize,
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// A size that would have to be filled up.
    #[error("weights of {size} {what}: a GPU repacks multiples of {step}; fill them up with zeros first")]
    Multiple {
        /// Rows, or the values of a row.
        what: &'static str,
        /// Their number.
        size: usize,
        /// What it has to be a multiple of.
        step: usize,
    },
    /// Tokens for which there is no such packing.
    #[error(
        "weights in steps for {format} tokens: they are for tokens of 16 bits; repack others with `pack`"
    )]
    Tokens {
        /// Their format.
        format: TokenFormat,
    },
}

/// Fills the rows of a matrix up with zeros: `rows` rows of `depth` values in the layout of NVFP4 tensors, values
/// `[rows, depth / 2]`, two a byte, low nibble first, and scales `[rows, depth / 16]`.
///
/// # Errors
/// If `depth` is not a multiple of 16, or the number of bytes is wrong.
pub fn pad(rows: usize, depth: usize, values: &[u8], scales: &[u8]) -> Result<Padded, PackingError> {
    check(rows, depth, values, scales)?;
    let filled = |bytes: &[u8], values_of_each: usize| {
        let [own, whole] = [depth, depth.next_multiple_of(DEPTH_STEP)].map(|depth| depth / values_of_each);
        let mut filled = vec![0; rows * whole];
        if own > 0 {
            for (to, from) in filled.chunks_exact_mut(whole).zip(bytes.chunks_exact(own)) {
                to[..own].copy_from_slice(from);
            }
        }
        filled
    };
    Ok(Padded {
        values: filled(values, 2),
        scales: filled(scales, BLOCK),
    })
}

/// Repacks a matrix of `rows` rows of `depth` values in the layout of NVFP4 tensors; see [`pad`].
///
/// # Errors
/// If `depth` is not a multiple of 16, or the number of bytes is wrong.
pub fn pack(rows: usize, depth: usize, values: &[u8], scales: &[u8]) -> Result<Packed, PackingError> {
    if !depth.is_multiple_of(DEPTH_STEP) {
        let padded = pad(rows, depth, values, scales)?;
        return pack(
            rows,
            depth.next_multiple_of(DEPTH_STEP),
            &padded.values,
            &padded.scales,
        );
    }
    check(rows, depth, values, scales)?;
    let chunks = depth / CHUNK;
    let filled = rows.next_multiple_of(ROWS);
    let mut packed = Packed {
        values: vec![0; filled * chunks * VALUE_BYTES],
        scales: vec![0; filled * chunks * SCALE_BYTES],
    };
    for (index, chunk) in values.chunks_exact(VALUE_BYTES).enumerate() {
        let (row, at) = (index / chunks, index % chunks);
        packed.values[(at * filled + row) * VALUE_BYTES..][..VALUE_BYTES].copy_from_slice(chunk);
    }
    for (index, chunk) in scales.chunks_exact(SCALE_BYTES).enumerate() {
        let (row, at) = (index / chunks, index % chunks);
        let sixteen = (at * filled + row / ROWS * ROWS) * SCALE_BYTES;
        let first = sixteen + row % 8 * 16 + row / 8 % 2 * 2;
        for (quarter, two) in chunk.chunks_exact(2).enumerate() {
            packed.scales[first + 4 * quarter..][..2].copy_from_slice(two);
        }
    }
    Ok(packed)
}

/// Lays a matrix out as a schedule's `packing` takes it for products with tokens of a format; see [`pad`], [`pack`] and
/// [`pack_steps`].
///
/// # Errors
/// If there is no such packing for these tokens, `depth` is not a multiple of 16, or the number of bytes is wrong.
pub fn pack_as(
    packing: Packing,
    tokens: TokenFormat,
    rows: usize,
    depth: usize,
    values: &[u8],
    scales: &[u8],
) -> Result<Packed, PackingError> {
    match packing {
        Packing::Canonical => {
            pad(rows, depth, values, scales).map(|Padded { values, scales }| Packed { values, scales })
        }
        Packing::Fragments => pack(rows, depth, values, scales),
        Packing::Steps => pack_steps(tokens, rows, depth, values, scales),
    }
}

/// The bytes of the values and of the scales that [`pack_as`] makes of `rows` rows of `depth` values.
pub fn packed_bytes(packing: Packing, rows: usize, depth: usize) -> (usize, usize) {
    let rows = match packing {
        Packing::Canonical => rows,
        Packing::Fragments | Packing::Steps => rows.next_multiple_of(ROWS),
    };
    let depth = depth.next_multiple_of(DEPTH_STEP);
    (rows * (depth / 2), rows * (depth / BLOCK))
}

fn check(rows: usize, depth: usize, values: &[u8], scales: &[u8]) -> Result<(), PackingError> {
    if !depth.is_multiple_of(BLOCK) {
        return Err(PackingError::Depth { depth });
    }
    for (what, given, of_row) in [("values", values, depth / 2), ("scales", scales, depth / BLOCK)] {
        let expected = rows * of_row;
        if given.len() != expected {
            return Err(PackingError::Length {
                what,
                rows,
                depth,
                expected,
                found: given.len(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_where_kernels_look_for_them() {
        let (rows, depth) = (21, 256);
        let values: Vec<u8> = (0..rows * depth / 2)
            .map(|index| (index * 7 + index / 251) as u8)
            .collect();
        let scales: Vec<u8> = (0..rows * depth / 16).map(|index| (index % 120) as u8).collect();
        let packed = pack(rows, depth, &values, &scales).unwrap();
        assert_eq!(
            (packed.values.len(), packed.scales.len()),
            (32 * depth / 2, 32 * depth / 16)
        );
        for row in 0..32 {
            for chunk in 0..2 {
                let found = &packed.values[(chunk * 32 + row) * 64..][..64];
                let expected = match row < rows {
                    true => &values[row * depth / 2 + chunk * 64..][..64],
                    false => &[0; 64],
                };
                assert_eq!(found, expected);
                // A thread of row g of eight and quarter q reads one word for rows g and g + 8.
                for at in 0..8 {
                    let (half, lane) = (row / 8 % 2, row % 8 * 4 + at / 2);
                    let found = packed.scales[(chunk * 2 + row / 16) * 128 + lane * 4 + half * 2 + at % 2];
                    let expected = if row < rows {
                        scales[row * 16 + chunk * 8 + at]
                    } else {
                        0
                    };
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn rows_are_filled_up_with_zeros() {
        for (rows, depth, whole) in [
            (3, 16, 256),
            (5, 272, 512),
            (2, 256, 256),
            (0, 48, 256),
            (4, 0, 0),
        ] {
            let values: Vec<u8> = (0..rows * depth / 2).map(|index| index as u8 | 1).collect();
            let scales: Vec<u8> = (0..rows * depth / 16)
                .map(|index| index as u8 % 120 + 1)
                .collect();
            let padded = pad(rows, depth, &values, &scales).unwrap();
            assert_eq!(
                (padded.values.len(), padded.scales.len()),
                (rows * whole / 2, rows * whole / 16)
            );
            for row in 0..rows {
                let (own, zeros) = padded.values[row * whole / 2..][..whole / 2].split_at(depth / 2);
                assert_eq!(own, &values[row * depth / 2..][..depth / 2]);
                assert!(zeros.iter().all(|byte| *byte == 0));
                let (own, zeros) = padded.scales[row * whole / 16..][..whole / 16].split_at(depth / 16);
                assert_eq!(own, &scales[row * depth / 16..][..depth / 16]);
                assert!(zeros.iter().all(|byte| *byte == 0));
            }
            let packed = pack(rows, depth, &values, &scales).unwrap();
            assert_eq!(packed, pack(rows, whole, &padded.values, &padded.scales).unwrap());
        }
    }

    #[test]
    fn bytes_are_known_beforehand() {
        for (rows, depth) in [(0, 0), (0, 48), (3, 0), (1, 16), (16, 256), (17, 272), (40, 1040)] {
            let (values, scales) = (vec![0; rows * depth / 2], vec![0; rows * depth / 16]);
            for packing in [Packing::Canonical, Packing::Fragments, Packing::Steps] {
                let packed = pack_as(packing, TokenFormat::Bf16, rows, depth, &values, &scales).unwrap();
                let lengths = (packed.values.len(), packed.scales.len());
                assert_eq!(
                    lengths,
                    packed_bytes(packing, rows, depth),
                    "{packing} {rows} {depth}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        let refusal = |rows, depth, values: usize, scales: usize| {
            pack(rows, depth, &vec![0; values], &vec![0; scales])
                .unwrap_err()
                .to_string()
        };
        assert!(refusal(1, 24, 12, 2).ends_with("pad rows with zeros to 32 values"));
        assert_eq!(
            refusal(2, 256, 255, 32),
            "255 bytes of values for 2 rows of 256 values; it takes 256"
        );
        assert_eq!(
            refusal(2, 256, 256, 33),
            "33 bytes of scales for 2 rows of 256 values; it takes 32"
        );
    }
}
