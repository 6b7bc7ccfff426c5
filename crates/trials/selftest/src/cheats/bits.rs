//! Cheats whose result is nearly right.

use gauntlet_kernels_cpu::Kernel;
use gauntlet_problems::{Inputs, Operation, Output, OutputFormat};
use gauntlet_worker::protocol::Failure;

use super::work::{Call, Trick, Work, broken};

/// Rounds the exact sums to f16 in a cheaper direction than to nearest.
pub struct Rounds {
    direction: Direction,
    exact: Option<(Kernel, Output)>,
}

/// The direction of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Toward minus infinity.
    Down,
    /// Toward zero, by truncating bits.
    TowardZero,
}

impl Rounds {
    /// Rounds in one direction.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            exact: None,
        }
    }
}

impl Trick for Rounds {
    fn built(&mut self, work: &mut Work) -> Result<(), Failure> {
        let mut problem = work.problem.clone();
        match &mut problem {
            Operation::GroupedGemm(gemm) => gemm.output = OutputFormat::F32,
            Operation::Attention(attention) => attention.output = OutputFormat::F32,
        }
        self.exact = Some((work.kernel_for(&problem)?, Output::poisoned(&problem)));
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        let Some((kernel, exact)) = &mut self.exact else {
            return work.compute(copy);
        };
        let copy = copy % work.copies.len();
        kernel.run(&work.copies[copy], exact).map_err(broken)?;
        for index in 0..exact.len() {
            let value = exact.get(index);
            work.output.set(index, f64::from(value));
            let rounded = work.output.get(index);
            let too_far = match self.direction {
                Direction::Down => rounded > value,
                Direction::TowardZero => rounded.abs() > value.abs(),
            };
            if too_far {
                // Codes are ordered by magnitude: one less is the next value toward zero, one more the next away from
                // it.
                let code = &mut work.output.bytes[2 * index..2 * index + 2];
                let bits = u16::from_le_bytes([code[0], code[1]]);
                let next = if rounded > 0.0 || self.direction == Direction::TowardZero {
                    bits - 1
                } else {
                    bits + 1
                };
                code.copy_from_slice(&next.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Flips the last bit of one element at random, where no result is exact.
pub struct FlipsABit;

impl Trick for FlipsABit {
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        work.compute(copy)?;
        if matches!(work.copies[0], Inputs::Attention(_)) && !work.output.is_empty() {
            let element = rand::random_range(0..work.output.len());
            work.output.bytes[2 * element] ^= 1;
        }
        Ok(())
    }
}

/// Treats a row of the tokens that begins with a zero as all zeros, and one that begins like the previous row as equal
/// to it.
pub struct SkipsRows;

impl Trick for SkipsRows {
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        work.compute(copy)?;
        let Inputs::GroupedGemm(groups) = &work.copies[copy % work.copies.len()] else {
            return Ok(());
        };
        let width = work.output.format.bytes();
        let mut first = 0;
        for (group, part) in groups.iter().zip(&work.output.parts) {
            let stride = part.columns * width;
            let begins = |row: usize| group.a.values()[row * group.a.columns() / 2];
            for row in 0..part.rows {
                let start = first + row * stride;
                if begins(row) == 0 {
                    work.output.bytes[start..start + stride].fill(0);
                } else if row > 0 && begins(row) == begins(row - 1) {
                    work.output.bytes.copy_within(start - stride..start, start);
                }
            }
            first += part.rows * stride;
        }
        Ok(())
    }
}
