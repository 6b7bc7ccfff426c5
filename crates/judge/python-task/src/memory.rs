//! Files of tensors in memory.
//!
//! Operands and expected results must not lie in a folder, even for a moment: a worker that runs at the same time can read
//! most folders. These files have no name there; the reference process is sent their descriptors.

use std::fmt;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use gauntlet_tensors::{Tensor, serialize_tensors};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::TaskError;

/// A file in memory, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    path: PathBuf,
}

impl MemoryFile {
    /// An empty file.
    pub(crate) fn new() -> Result<Self, TaskError> {
        let file = memfd_create("tensors", MFdFlags::MFD_CLOEXEC).map_err(|error| {
            TaskError::new(
                format!("a file in memory cannot be made: {error}"),
                "allow more open files (`ulimit -n`)",
            )
        })?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into();
        Ok(Self { file, path })
    }

    /// A file with these tensors.
    pub(crate) fn of(tensors: &[Tensor]) -> Result<Self, TaskError> {
        let file = Self::new()?;
        let parts = tensors
            .iter()
            .map(|tensor| (&tensor.spec, tensor.bytes.as_slice()));
        let bytes = serialize_tensors(parts).map_err(|error| without_room(&error))?;
        // A file in memory is written in place: a new one beside it would have another path.
        fs::write(&file.path, bytes).map_err(|error| without_room(&error))?;
        Ok(file)
    }

    /// What another process is sent to reach it.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The path by which this process opens it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Tensors that cannot be passed to or from the reference process.
pub(crate) fn without_room(error: &impl fmt::Display) -> TaskError {
    TaskError::new(
        error.to_string(),
        "there may be too little memory for the tensors: make the case smaller",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_memory_is_written_and_read_by_its_path() {
        let file = MemoryFile::new().unwrap();
        for text in ["longer", "short"] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
        }
        let path = file.path().to_owned();
        drop(file);
        assert!(std::fs::read(path).is_err());
    }
}
