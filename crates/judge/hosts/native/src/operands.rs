//! Operands, as read from files: what every call's inputs are copied from.

use std::path::{Path, PathBuf};

use gauntlet_device::available_bytes;
use gauntlet_tensors::{Tensor, TensorFile, TensorSpec, save_tensors};
use gauntlet_worker::protocol::Failure;

use crate::service::{bad_request, broken};

/// The inputs of several copies. Copies of the same file share their memory, since no kernel ever sees it.
#[derive(Debug)]
pub struct Operands {
    files: Vec<Vec<Tensor>>,
    copies: usize,
}

impl Operands {
    /// Reads the input tensors of each file.
    ///
    /// # Errors
    /// If a file is malformed.
    pub fn load(paths: &[PathBuf], inputs: &[TensorSpec], copies: usize) -> Result<Self, Failure> {
        let read = |path: &PathBuf| {
            TensorFile::open(path)
                .and_then(|file| file.tensors(inputs))
                .map_err(|error| bad_request(error.to_string()))
        };
        let files = paths.iter().take(copies).map(read).collect::<Result<_, _>>()?;
        Ok(Self { files, copies })
    }

    /// The number of copies.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The number of the file that holds a copy: the copy's own, modulo the number of files.
    pub fn file(&self, copy: usize) -> usize {
        copy % self.copies % self.files.len()
    }

    /// The tensors of a copy.
    pub fn copy(&self, copy: usize) -> &[Tensor] {
        &self.files[self.file(copy)]
    }

    /// Bytes of one copy.
    pub fn bytes(&self) -> usize {
        self.copy(0).iter().map(|tensor| tensor.bytes.len()).sum()
    }
}

/// Writes a result, whose outputs lie one after the other; returns its bytes.
pub(crate) fn save(outputs: &[TensorSpec], result: &[u8], path: &Path) -> Result<u64, Failure> {
    let mut rest = result;
    let views = outputs.iter().map(|spec| {
        let (bytes, after) = rest.split_at(spec.bytes().min(rest.len()));
        rest = after;
        (spec, bytes)
    });
    save_tensors(views, path).map_err(|error| broken(error.to_string()))?;
    Ok(result.len() as u64)
}

/// Fails if `bytes` more would not fit into memory: the system kills a process that exceeds the available memory.
pub(crate) fn check_memory(what: &str, bytes: usize) -> Result<(), Failure> {
    let available = available_bytes();
    if bytes <= available {
        return Ok(());
    }
    Err(broken(format!(
        "{what} would take {bytes} more bytes of memory, but only {available} are available; use a smaller case or \
         fewer calls in a request"
    )))
}
