//! The result of a case.

use std::path::Path;

use gauntlet_tensors::{Tensor, TensorFile, TensorFileError, TensorSpec, save_tensors};

/// The result of a case: its output tensors, in the order in which the task declares them.
#[derive(Debug, Clone, PartialEq)]
pub struct Output(pub Vec<Tensor>);

impl Output {
    /// Outputs in which every element of a float type is NaN, so that unwritten elements can be detected.
    pub fn poisoned(outputs: &[TensorSpec]) -> Self {
        Self(
            outputs
                .iter()
                .map(|spec| Tensor::filled(spec.clone(), 0xFF))
                .collect(),
        )
    }

    /// Number of elements of all tensors.
    pub fn elements(&self) -> usize {
        self.0.iter().map(Tensor::len).sum()
    }

    /// Reads the output tensors from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or a tensor is missing or of another type or shape.
    pub fn load(path: &Path, outputs: &[TensorSpec]) -> Result<Self, TensorFileError> {
        TensorFile::open(path)?.tensors(outputs).map(Self)
    }

    /// Writes the output tensors to a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TensorFileError> {
        save_tensors(
            self.0
                .iter()
                .map(|tensor| (&tensor.spec, tensor.bytes.as_slice())),
            path,
        )
    }
}
