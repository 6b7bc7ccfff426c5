//! Matrix layouts of warps and of the matrix unit: which lane holds which element, and where elements lie in shared
//! memory (PTX ISA, "Matrix fragments for mma.m16n8k16" and k32, "Register fragments and shared memory matrix layouts"
//! of wgmma).

use std::ops::Range;

use gauntlet_tensors::e4m3;
use half::{bf16, f16};

use crate::fault::Problem;
use crate::instruction::Element;
use crate::memory::{Shared, number};
use crate::tensor_map::Swizzle;

/// Bytes of a row along the depth of one product.
pub(crate) const DEPTH_BYTES: usize = 32;

impl Element {
    /// The number that the bytes of an element encode.
    fn decode(self, bytes: &[u8]) -> f32 {
        let bits = number(bytes) as u16;
        match self {
            Self::F16 => f16::from_bits(bits).to_f32(),
            Self::Bf16 => bf16::from_bits(bits).to_f32(),
            Self::E4m3 => e4m3::decode(bits as u8),
        }
    }

    /// Elements per register.
    fn per_word(self) -> usize {
        4 / self.bytes()
    }
}

/// The numbers that the bytes encode.
pub(crate) fn decoded(element: Element, bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks(element.bytes())
        .map(|bytes| element.decode(bytes))
        .collect()
}

/// Sixteen rows of a first operand, row by row, from the fragments of a warp's lanes. In lane 4g + q, word 0 belongs to
/// row g and word 1 to row g + 8, both at word column q; words 2 and 3 are the same for the second half of the depth.
pub(crate) fn left(element: Element, words: &[[u32; 4]]) -> Vec<f32> {
    let (per_word, depth) = (element.per_word(), element.depth());
    let mut rows = vec![0.0; 16 * depth];
    for (lane, words) in words.iter().enumerate() {
        for (index, word) in words.iter().enumerate() {
            let row = lane / 4 + index % 2 * 8;
            let column = lane % 4 * per_word + index / 2 * depth / 2;
            spread(element, *word, &mut rows[row * depth + column..]);
        }
    }
    rows
}

/// Eight columns of a second operand, column by column, from fragments of two words per lane.
pub(crate) fn right(element: Element, words: &[[u32; 2]]) -> Vec<f32> {
    let (per_word, depth) = (element.per_word(), element.depth());
    let mut columns = vec![0.0; 8 * depth];
    for (lane, words) in words.iter().enumerate() {
        for (index, word) in words.iter().enumerate() {
            let row = lane % 4 * per_word + index * depth / 2;
            spread(element, *word, &mut columns[lane / 4 * depth + row..]);
        }
    }
    columns
}

fn spread(element: Element, word: u32, to: &mut [f32]) {
    let bytes = word.to_le_bytes();
    for (to, bytes) in to.iter_mut().zip(bytes.chunks(element.bytes())) {
        *to = element.decode(bytes);
    }
}

/// The row and the column, within sixteen rows of sums, of register `index` of a lane.
pub(crate) fn place_of_sum(lane: usize, index: usize) -> (usize, usize) {
    (
        lane / 4 + index / 2 % 2 * 8,
        index / 4 * 8 + lane % 4 * 2 + index % 2,
    )
}

/// Adds the product of a row and a column to a sum: exact except for one rounding of the products' sum and one at the
/// end.
pub(crate) fn added(sum: f32, row: &[f32], column: &[f32]) -> f32 {
    let products = row
        .iter()
        .zip(column)
        .map(|(row, column)| f64::from(*row) * f64::from(*column));
    (f64::from(sum) + products.sum::<f64>()) as f32
}

/// A matrix in shared memory, as its descriptor gives it to the matrix unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    address: u32,
    /// Bytes between adjacent pieces along one direction and along the other.
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
}

impl Descriptor {
    pub fn new(bits: u64) -> Result<Self, Problem> {
        let bytes = |shift: u32| ((bits >> shift & 0x3FFF) << 4) as u32;
        if bits >> 49 & 7 != 0 {
            return Err(
                "matrices that do not begin at a multiple of what repeats are not understood here".to_owned(),
            );
        }
        Ok(Self {
            address: bytes(0),
            leading: bytes(16),
            stride: bytes(32),
            swizzle: match bits >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::Bytes128,
                2 => Swizzle::Bytes64,
                _ => Swizzle::Bytes32,
            },
        })
    }

    /// The descriptor of a matrix for the tensor cores of sm_100a (PTX ISA, "Shared memory descriptor" of tcgen05): the same first
    /// fields, a constant, and other codes of the swizzle.
    pub fn of_tensor_core(bits: u64) -> Result<Self, Problem> {
        if bits >> 14 & 3 != 0 || bits >> 30 & 3 != 0 || bits >> 53 & 0xFF != 0 {
            return Err("bits 14, 15, 30, 31 and 53 to 60 have to be 0".to_owned());
        }
        if bits >> 46 & 7 != 1 {
            return Err(format!(
                "bits 46 to 48 hold {}, and have to hold 1",
                bits >> 46 & 7
            ));
        }
        if bits >> 52 & 1 != 0 {
            return Err("bit 52 (absolute addresses) is understood by sm_103a only".to_owned());
        }
        let swizzle = match bits >> 61 {
            0 => 0,
            2 => 1,
            4 => 2,
            6 => 3,
            other => {
                return Err(format!(
                    "the swizzle {other} in bits 61 to 63 is not understood here"
                ));
            }
        };
        let first_fields = bits & !(0b111 << 46) & !(0b111 << 61);
        Self::new(first_fields | swizzle << 62)
    }

    /// The bytes of rows (or columns) from `first` on, each along the depth of a product, one after another.
    ///
    /// # Errors
    /// If the matrix lies outside of shared memory, or threads have stored there without a fence.
    pub fn gather(
        &self,
        shared: &Shared,
        element: Element,
        transposed: bool,
        rows: Range<usize>,
    ) -> Result<Vec<u8>, Problem> {
        if !transposed {
            return self.rows(shared, rows, DEPTH_BYTES);
        }
        let mut gathered = Vec::with_capacity(rows.len() * DEPTH_BYTES);
        for row in rows {
            for byte in (0..DEPTH_BYTES).step_by(element.bytes()) {
                let offset = self.offset_transposed(row * element.bytes(), byte / element.bytes());
                let place = self.swizzle.place(self.address + offset);
                gathered.extend_from_slice(shared.read_async(place, element.bytes())?);
            }
        }
        Ok(gathered)
    }

    /// The bytes of rows that are contiguous in pieces of 16 bytes, one row after another.
    ///
    /// # Errors
    /// As of [`Self::gather`].
    pub fn rows(&self, shared: &Shared, rows: Range<usize>, bytes: usize) -> Result<Vec<u8>, Problem> {
        let mut gathered = Vec::with_capacity(rows.len() * bytes);
        for row in rows {
            for byte in (0..bytes).step_by(16) {
                let place = self.swizzle.place(self.address + self.offset(row, byte));
                gathered.extend_from_slice(shared.read_async(place, 16)?);
            }
        }
        Ok(gathered)
    }

    /// Depth contiguous: a piece has eight rows and is as wide as the swizzle, or 16 bytes wide without a swizzle.
    fn offset(&self, row: usize, byte: usize) -> u32 {
        let (row, byte) = (row as u32, byte as u32);
        let eights = row / 8 * self.stride;
        eights
            + match self.swizzle {
                Swizzle::None => row % 8 * 16 + byte / 16 * self.leading + byte % 16,
                Swizzle::Bytes32 => row % 8 * 32 + byte,
                Swizzle::Bytes64 => row % 8 * 64 + byte,
                Swizzle::Bytes128 => row % 8 * 128 + byte,
            }
    }

    /// Rows contiguous: a piece has eight steps of the depth, and as many rows as the swizzle is wide.
    fn offset_transposed(&self, byte: usize, at: usize) -> u32 {
        let (byte, at) = (byte as u32, at as u32);
        let width = match self.swizzle {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        };
        byte / width * self.leading + at / 8 * self.stride + at % 8 * width + byte % width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(number: f32) -> u32 {
        u32::from(f16::from_f32(number).to_bits())
    }

    #[test]
    fn fragments_hold_what_the_manual_says() {
        // Element (row, column) is row + column / 32.
        let value = |row: usize, column: usize| row as f32 + column as f32 / 32.0;
        let word = |row, column| half(value(row, column)) | half(value(row, column + 1)) << 16;
        let words: Vec<_> = (0..32)
            .map(|lane| {
                let (row, column) = (lane / 4, lane % 4 * 2);
                [
                    word(row, column),
                    word(row + 8, column),
                    word(row, column + 8),
                    word(row + 8, column + 8),
                ]
            })
            .collect();
        let rows = left(Element::F16, &words);
        assert!((0..16 * 16).all(|index| rows[index] == value(index / 16, index % 16)));
        let words: Vec<_> = words.iter().map(|words| [words[0], words[2]]).collect();
        let columns = right(Element::F16, &words);
        assert!((0..8 * 16).all(|index| columns[index] == value(index / 16, index % 16)));
        assert_eq!(place_of_sum(5, 7), (1 + 8, 8 + 2 + 1));
    }

    #[test]
    fn a_descriptor_finds_swizzled_rows() {
        // 16 rows of 64 halves, 128 bytes each, with the 128-byte swizzle.
        let mut shared = Shared::new(2048 + 1024);
        for row in 0..16_u32 {
            for column in 0..64_u32 {
                let logical = 1024 + row * 128 + column * 2;
                let bits = f16::from_f32((row * 64 + column) as f32).to_bits();
                shared
                    .write_async(logical ^ (row % 8) << 4, &bits.to_le_bytes())
                    .unwrap();
            }
        }
        let bits = 1 << 62 | (1024 >> 4) << 32 | 1 << 16 | (1024 + 32) >> 4;
        let descriptor = Descriptor::new(bits).unwrap();
        let gathered = descriptor.gather(&shared, Element::F16, false, 9..11).unwrap();
        let expected: Vec<_> = [9, 10]
            .into_iter()
            .flat_map(|row| (16..32).map(move |column| (row * 64 + column) as f32))
            .collect();
        assert_eq!(decoded(Element::F16, &gathered), expected);
    }

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(added(1.0, &[2.0_f32.powi(-30); 2], &[1.0, -1.0]), 1.0);
        assert_eq!(added(0.5, &[3.0, 4.0], &[2.0, 0.25]), 7.5);
    }
}
