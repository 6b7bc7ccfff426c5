//! A folder for what a candidate's build makes: compiled kernels and the caches of compilers.
//!
//! One worker fills it; workers after it read it and cannot change it (Landlock). So a comparison compiles once, and
//! its later processes cost their start and not their compiler.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The variable that names the folder itself.
const FOLDER: &str = "GAUNTLET_ARTEFACTS";

/// The variables that lead compilers to their caches, and the caches' names in the folder.
pub(crate) const CACHES: [(&str, &str); 6] = [
    ("TRITON_CACHE_DIR", "triton"),
    ("TORCHINDUCTOR_CACHE_DIR", "torchinductor"),
    ("CUDA_CACHE_PATH", "cuda"),
    ("NUMBA_CACHE_DIR", "numba"),
    ("CUPY_CACHE_DIR", "cupy"),
    ("XDG_CACHE_HOME", "cache"),
];

/// A folder for artefacts, as one worker may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefacts {
    /// The folder. It may lie inside the folder of all workers, where no other worker sees it.
    pub folder: PathBuf,
    /// Whether the worker may write there.
    pub writable: bool,
}

impl Artefacts {
    /// Makes the caches inside an empty folder, to be filled.
    ///
    /// # Errors
    /// If a folder cannot be made.
    pub fn prepare(folder: &Path) -> io::Result<Self> {
        for (_, cache) in CACHES {
            fs::create_dir(folder.join(cache))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            writable: true,
        })
    }

    /// The same folder for workers that must not change it.
    pub fn sealed(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            writable: false,
        }
    }

    /// Whether a worker has put anything there.
    pub fn hold_files(&self) -> bool {
        let files = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        let besides = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| !CACHES.iter().any(|(_, cache)| entry.file_name() == *cache));
        besides || CACHES.iter().any(|(_, cache)| files(&self.folder.join(cache)))
    }

    /// The variables of a worker that uses the folder.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let caches = CACHES.map(|(variable, cache)| (variable, self.folder.join(cache).into_os_string()));
        std::iter::once((FOLDER, self.folder.clone().into_os_string())).chain(caches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_files_once_something_is_in_a_cache_or_beside_them() {
        for place in ["triton/kernel.cubin", "kernel.so"] {
            let folder = tempfile::tempdir().unwrap();
            let artefacts = Artefacts::prepare(folder.path()).unwrap();
            assert!(!artefacts.hold_files());
            fs::write(folder.path().join(place), "code").unwrap();
            assert!(artefacts.hold_files());
        }
    }
}
