//! Random NVFP4 operands, their products in f64, and their layout in shared memory.

use gauntlet_tensors::e4m3;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::kernel::{Case, Swizzle};

/// Bytes of the scales of 128 rows over a depth of 64.
pub const SCALE_BYTES: usize = 512;

const E2M1: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Rows of e2m1 elements, two a byte, with an e4m3 scale for each 16.
pub struct Matrix {
    depth: usize,
    codes: Vec<u8>,
    scales: Vec<u8>,
}

impl Matrix {
    fn random(rows: usize, depth: usize, random: &mut ChaCha8Rng) -> Self {
        let byte = |_| random.random();
        let codes = (0..rows * depth / 2).map(byte).collect();
        // All numbers that are no NaN.
        let scale = |_| random.random_range(0..0x7F);
        Self {
            depth,
            codes,
            scales: (0..rows * depth / 16).map(scale).collect(),
        }
    }

    /// Sets the scale of 16 elements.
    pub fn set_scale(&mut self, row: usize, block: usize, code: u8) {
        self.scales[row * self.depth / 16 + block] = code;
    }

    fn value(&self, row: usize, at: usize) -> f64 {
        let byte = self.codes[(row * self.depth + at) / 2];
        let code = if at.is_multiple_of(2) {
            byte & 0xF
        } else {
            byte >> 4
        };
        let magnitude = E2M1[usize::from(code & 7)];
        let value = if code & 8 == 0 { magnitude } else { -magnitude };
        value * f64::from(e4m3::decode(self.scales[(row * self.depth + at) / 16]))
    }

    /// The values of all elements, row by row.
    fn values(&self) -> Vec<f64> {
        let elements = 0..2 * self.codes.len();
        elements
            .map(|index| self.value(index / self.depth, index % self.depth))
            .collect()
    }

    /// The bytes of some rows, from an offset of a row on, as the tensor core expects them: K-major.
    fn laid_out(&self, rows: std::ops::Range<usize>, from: usize, width: usize, swizzle: Swizzle) -> Vec<u8> {
        let count = rows.len();
        let mut bytes = vec![0; count * width];
        for (row, of_matrix) in rows.enumerate() {
            for piece in 0..width / 16 {
                let source = of_matrix * self.depth / 2 + from + 16 * piece;
                let to = match swizzle {
                    Swizzle::None => piece * count * 16 + row * 16,
                    _ => {
                        let wide = swizzle.width() / 16;
                        // The swizzle of a piece follows from the rows of 128 bytes in which it lies.
                        let line = row * swizzle.width() / 128;
                        let other = (line % wide) ^ (piece % wide);
                        piece / wide * count * swizzle.width() + row * swizzle.width() + 16 * other
                    }
                };
                bytes[to..to + 16].copy_from_slice(&self.codes[source..source + 16]);
            }
        }
        bytes
    }

    /// The scales of up to 128 rows over a depth of 64: those of row r at (r % 32) * 16 + r / 32 * 4.
    fn scales_laid_out(&self, rows: std::ops::Range<usize>, from: usize) -> Vec<u8> {
        let mut bytes = vec![0; SCALE_BYTES];
        for (row, of_matrix) in rows.enumerate() {
            let source = (of_matrix * self.depth + from) / 16;
            let to = row % 32 * 16 + row / 32 * 4;
            bytes[to..to + 4].copy_from_slice(&self.scales[source..source + 4]);
        }
        bytes
    }
}

/// The operands of a case: A with 128 rows for each block, B with a row for each column of the result.
pub struct Operands {
    case: Case,
    pub left: Matrix,
    pub right: Matrix,
}

impl Operands {
    pub fn random(case: Case, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            case,
            left: Matrix::random(128 * case.blocks(), case.depth, &mut random),
            right: Matrix::random(case.columns, case.depth, &mut random),
        }
    }

    /// What each stage of a block holds: its rows of A, its part of B, its scales of A, all scales of B.
    pub fn image(&self, block: usize) -> Vec<u8> {
        let Case {
            columns,
            depth,
            chunk,
            swizzle,
            ..
        } = self.case;
        let half = columns / self.case.blocks();
        let mut image = Vec::new();
        for chunk_begin in (0..depth).step_by(chunk) {
            let rows = 128 * block..128 * (block + 1);
            image.extend(
                self.left
                    .laid_out(rows.clone(), chunk_begin / 2, chunk / 2, swizzle),
            );
            let of_block = half * block..half * (block + 1);
            let right = self.right.laid_out(of_block, chunk_begin / 2, chunk / 2, swizzle);
            image.extend(right);
            for from in (chunk_begin..chunk_begin + chunk).step_by(64) {
                image.extend(self.left.scales_laid_out(rows.clone(), from));
                for first in (0..columns).step_by(128) {
                    image.extend(self.right.scales_laid_out(first..columns.min(first + 128), from));
                }
            }
            image.resize(image.len().next_multiple_of(self.case.stage_bytes()), 0);
        }
        image
    }

    /// The first result that is wrong, if any. Results may differ from the products in f64 by the rounding of the accumulator.
    pub fn wrong(&self, found: &[f32]) -> Option<String> {
        let Case { columns, depth, .. } = self.case;
        let (left, right) = (self.left.values(), self.right.values());
        (0..found.len()).find_map(|index| {
            let (row, column) = (index / columns, index % columns);
            let terms = left[row * depth..][..depth]
                .iter()
                .zip(&right[column * depth..][..depth]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), (one, other)| {
                (sum + one * other, size + (one * other).abs())
            });
            let error = (f64::from(found[index]) - sum).abs();
            let is_right = error <= size * 2.0_f64.powi(-21);
            (!is_right).then(|| format!("row {row}, column {column}: {} instead of {sum}", found[index]))
        })
    }
}
