//! The arithmetic of a block-scaled product.

use gauntlet_tensors::e4m3;

use crate::fault::Problem;
use crate::matrix::DEPTH_BYTES;
use crate::tensor_core::memory::{LANES, QUARTER, TensorMemory};

/// Elements along the depth (K) of one product.
const DEPTH: usize = 2 * DEPTH_BYTES;
/// Elements that share a scale.
const SCALED: usize = 16;
/// Scales of a row: the four bytes of one cell of tensor memory.
const SCALES: usize = DEPTH / SCALED;

/// Twice the value of each e2m1 code.
const DOUBLED: [i16; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The value of each ue4m3 code, divided by two to undo the doubling of an element. A code with the upper bit set is none: what
/// the hardware makes of it is not specified, and NaN shows it in the result.
const HALVED_SCALES: [f64; 256] = {
    let mut values = [f64::NAN; 256];
    let mut code = 0;
    while code < 128 {
        values[code] = e4m3::VALUES[code] as f64 / 2.0;
        code += 1;
    }
    values
};

/// The number of tensor memory columns that hold the scales of `rows` rows of an operand: one for each 32 rows.
pub(super) fn scale_columns(rows: usize) -> usize {
    rows.div_ceil(QUARTER)
}

/// The columns of a second operand, decoded: for each step of the depth, twice the value of each column.
pub(super) struct Columns {
    count: usize,
    doubled: Vec<i16>,
}

impl Columns {
    /// From the columns' bytes, one column after another, two elements a byte, the first in the lower half.
    pub fn decode(bytes: &[u8]) -> Self {
        let count = bytes.len() / DEPTH_BYTES;
        let mut doubled = vec![0; count * DEPTH];
        for (column, bytes) in bytes.chunks_exact(DEPTH_BYTES).enumerate() {
            for (index, value) in elements(bytes).enumerate() {
                doubled[index * count + column] = value;
            }
        }
        Self { count, doubled }
    }
}

fn elements(bytes: &[u8]) -> impl Iterator<Item = i16> {
    bytes
        .iter()
        .flat_map(|byte| [DOUBLED[usize::from(byte & 0xF)], DOUBLED[usize::from(byte >> 4)]])
}

/// Where a product's sums and scales lie in tensor memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// The first column of the sums: row by row, a lane each.
    pub sums: usize,
    /// The first columns of the scales of both operands.
    pub scales: [usize; 2],
    /// Whether the sums are added to those that are there.
    pub adds: bool,
    pub negates: bool,
}

/// Multiplies 128 rows, given by their bytes, by columns. The dot products of 16 elements are exact in 16 bits, and their
/// sum over the depth, each times two scales, is exact in f64: it takes at most 50 bits. It is rounded once, with the
/// accumulator.
pub(super) fn multiply(
    memory: &mut TensorMemory,
    places: Places,
    rows: &[u8],
    columns: &Columns,
) -> Result<(), Problem> {
    let count = columns.count;
    let of_rows = scales(memory, places.scales[0], LANES, "A")?;
    let of_columns = scales(memory, places.scales[1], count, "B")?;
    let (mut dots, mut sums) = (vec![0_i16; count], vec![0.0_f64; count]);
    for (row, bytes) in rows.chunks_exact(DEPTH_BYTES).enumerate() {
        sums.fill(0.0);
        for (block, bytes) in bytes.chunks_exact(SCALED / 2).enumerate() {
            dots.fill(0);
            for (index, value) in elements(bytes).enumerate() {
                let begin = (block * SCALED + index) * count;
                for (dot, other) in dots.iter_mut().zip(&columns.doubled[begin..begin + count]) {
                    // At most 16 · 12 · 12: checks for overflow would keep the loop from being vectorised.
                    *dot = dot.wrapping_add(value.wrapping_mul(*other));
                }
            }
            let scale = of_rows[block * LANES + row];
            let scales = &of_columns[block * count..][..count];
            for ((sum, dot), other) in sums.iter_mut().zip(&dots).zip(scales) {
                *sum += f64::from(*dot) * (scale * other);
            }
        }
        let cells = memory.cells_mut(row, places.sums..places.sums + count);
        for (cell, sum) in cells.iter_mut().zip(&sums) {
            let before = if places.adds { f32::from_bits(*cell) } else { 0.0 };
            let sum = if places.negates { -sum } else { *sum };
            *cell = rounded_sum(before, sum).to_bits();
        }
    }
    Ok(())
}

/// The scales of an operand's rows, block by block. Column `first + r / 32` holds those of row `r`, in lane `r % 32` of each quarter
/// of the lanes (PTX ISA, "Layout of the Scale Factor A Matrix for scale_vec::4X").
fn scales(memory: &TensorMemory, first: usize, rows: usize, name: &str) -> Result<Vec<f64>, Problem> {
    let mut scales = vec![0.0; SCALES * rows];
    for row in 0..rows {
        let (lane, column) = (row % QUARTER, first + row / QUARTER);
        let cell = memory.cell(lane, column);
        if let Some(other) = (lane..LANES)
            .step_by(QUARTER)
            .find(|other| memory.cell(*other, column) != cell)
        {
            return Err(format!(
                "the scales of row {row} of {name} in column {column} of tensor memory are {cell:#010x} in lane {lane} and {:#010x} in lane \
                 {other}: all quarters of the lanes have to hold them",
                memory.cell(other, column)
            ));
        }
        for (block, code) in cell.to_le_bytes().into_iter().enumerate() {
            scales[block * rows + row] = HALVED_SCALES[usize::from(code)];
        }
    }
    Ok(scales)
}

/// The sum of both, rounded once.
fn rounded_sum(before: f32, sum: f64) -> f32 {
    let before = f64::from(before);
    let total = before + sum;
    // What the rounding to f64 cut off (Knuth's two-sum). If it is not zero, an odd last bit keeps the second rounding right.
    let part = total - before;
    let error = (before - (total - part)) + (sum - part);
    if error == 0.0 || !total.is_finite() || total.to_bits() & 1 == 1 {
        return total as f32;
    }
    let is_beyond = (error > 0.0) == (total > 0.0);
    f64::from_bits(if is_beyond {
        total.to_bits() + 1
    } else {
        total.to_bits() - 1
    }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_rounded_once() {
        // Half a unit in the last place of 1, and a little: rounded to f64 first, it would be a tie.
        let (half, little) = (2.0_f64.powi(-24), 2.0_f64.powi(-60));
        assert_eq!(rounded_sum(1.0, half), 1.0);
        assert_eq!(rounded_sum(1.0, half + little), 1.0_f32.next_up());
        assert_eq!(rounded_sum(-1.0, -half - little), (-1.0_f32).next_down());
        assert_eq!(rounded_sum(1.0_f32.next_up(), half - little), 1.0_f32.next_up());
        assert_eq!(rounded_sum(0.0, 2.5), 2.5);
        assert!(rounded_sum(0.0, f64::NAN).is_nan());
    }

    #[test]
    fn a_scale_is_half_its_value_and_no_sign() {
        assert_eq!(HALVED_SCALES[0x38], 0.5);
        assert_eq!(HALVED_SCALES[0x7E], 224.0);
        assert_eq!(HALVED_SCALES[1], 2.0_f64.powi(-10));
        assert!(HALVED_SCALES[0x7F].is_nan() && HALVED_SCALES[0xB8].is_nan());
    }
}
