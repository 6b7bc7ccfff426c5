//! The result of a problem, as the bytes a kernel wrote.

use std::collections::TryReserveError;

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

    /// As [`poisoned`](Self::poisoned), for problems that may have no place in memory.
    ///
    /// # Errors
    /// If the elements cannot be allocated.
    pub fn try_poisoned(problem: &Operation) -> Result<Self, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(problem.output_bytes())?;
        bytes.resize(problem.output_bytes(), 0xFF);
        let (parts, format) = (problem.parts(), problem.output_format());
        Ok(Self { format, parts, bytes })
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
        self.format.decode(&self.bytes, index)
    }

    /// Rounds `value` to the format and writes it as element `index`, counted over all parts.
    pub fn set(&mut self, index: usize, value: f64) {
        let size = self.format.bytes();
        self.format
            .encode(value, &mut self.bytes[index * size..(index + 1) * size]);
    }
}

impl OutputFormat {
    /// Rounds `value` once, to nearest and ties to even, and writes the little-endian bytes of the element.
    ///
    /// # Panics
    /// When there are not [`bytes`](Self::bytes) bytes.
    pub fn encode(self, value: f64, bytes: &mut [u8]) {
        let rounded = self.round(value);
        match self {
            Self::F16 => bytes.copy_from_slice(&f16::from_f32(rounded).to_le_bytes()),
            Self::Bf16 => bytes.copy_from_slice(&bf16::from_f32(rounded).to_le_bytes()),
            Self::F32 => bytes.copy_from_slice(&rounded.to_le_bytes()),
        }
    }

    /// Element `index` of little-endian `bytes`, exact.
    pub(crate) fn decode(self, bytes: &[u8], index: usize) -> f32 {
        let at = index * self.bytes();
        match self {
            Self::F16 => f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32(),
            Self::Bf16 => bf16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32(),
            Self::F32 => f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]),
        }
    }
}
