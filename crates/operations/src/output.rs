//! The result of a problem, as the bytes a kernel wrote.

use half::{bf16, f16};
use thiserror::Error;

use crate::{Operation, OutputFormat, Part};

/// The result of a problem: its [parts](Operation::parts) one after another, little-endian.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The number format of `bytes`.
    pub format: OutputFormat,
    /// The matrices, in order.
    pub parts: Vec<Part>,
    /// The elements.
    pub bytes: Vec<u8>,
}

/// Why bytes cannot be a problem's output.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the output has {found} bytes, but the problem's takes {expected}: each of its elements, in {format}"
)]
pub struct OutputError {
    /// Bytes of the problem's output.
    pub expected: usize,
    /// Bytes given.
    pub found: usize,
    /// The number format of the problem's output.
    pub format: OutputFormat,
}

impl Output {
    /// The bytes as the output of `problem`.
    ///
    /// # Errors
    /// When their number is not that of the problem's output.
    pub fn new(problem: &Operation, bytes: Vec<u8>) -> Result<Self, OutputError> {
        let (parts, format, expected) = (problem.parts(), problem.output_format(), problem.output_bytes());
        if bytes.len() != expected {
            return Err(OutputError {
                expected,
                found: bytes.len(),
                format,
            });
        }
        Ok(Self { format, parts, bytes })
    }

    /// An output in which every element is NaN, so that elements that are never written are detected.
    pub fn poisoned(problem: &Operation) -> Self {
        let (parts, format) = (problem.parts(), problem.output_format());
        // 0xFF in every byte is a NaN in all three formats.
        let bytes = vec![0xFF; problem.output_bytes()];
        Self { format, parts, bytes }
    }

    /// Makes every element NaN again.
    pub fn poison(&mut self) {
        self.bytes.fill(0xFF);
    }

    /// Number of elements over all parts.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.format.bytes()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
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

    /// Rounds `value` to the format and writes it as element `index`, counted over all parts.
    pub fn set(&mut self, index: usize, value: f64) {
        let rounded = self.format.round(value);
        let at = index * self.format.bytes();
        match self.format {
            OutputFormat::F16 => {
                self.bytes[at..at + 2].copy_from_slice(&f16::from_f32(rounded).to_le_bytes())
            }
            OutputFormat::Bf16 => {
                self.bytes[at..at + 2].copy_from_slice(&bf16::from_f32(rounded).to_le_bytes())
            }
            OutputFormat::F32 => self.bytes[at..at + 4].copy_from_slice(&rounded.to_le_bytes()),
        }
    }
}
