//! The result of a problem, as the bytes a kernel wrote.

use half::{bf16, f16};

use crate::{OutputFormat, Part, Problem};

/// The result of a problem: its [parts](Problem::parts) one after another, little-endian.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The number format of `bytes`.
    pub format: OutputFormat,
    /// The matrices, in order.
    pub parts: Vec<Part>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Output {
    /// An output in which every element is NaN, so that one never written can be told.
    pub fn poisoned(problem: &Problem) -> Self {
        let parts = problem.parts();
        let format = problem.output_format();
        let elements: usize = parts.iter().map(|part| part.rows * part.columns).sum();
        // 0xFF in every byte is a NaN in all three formats.
        Self {
            format,
            parts,
            bytes: vec![0xFF; elements * format.bytes()],
        }
    }

    /// Makes every element NaN again.
    pub fn poison(&mut self) {
        self.bytes.fill(0xFF);
    }

    /// Element `index` counted over all parts.
    pub fn get(&self, index: usize) -> f32 {
        let at = index * self.format.bytes();
        match self.format {
            OutputFormat::F16 => f16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]).to_f32(),
            OutputFormat::Bf16 => bf16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]).to_f32(),
            OutputFormat::F32 => f32::from_le_bytes([
                self.bytes[at],
                self.bytes[at + 1],
                self.bytes[at + 2],
                self.bytes[at + 3],
            ]),
        }
    }
}
