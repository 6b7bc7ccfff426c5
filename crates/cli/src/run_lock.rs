//! A lock on a run in progress, so that no other program resumes it at the same time.

use std::fs::File;
use std::path::{Path, PathBuf};

use gauntlet_judge::ledger::RunId;

use crate::error::CliError;

/// A locked file beside the ledger. The lock ends with the process, in every case; the file is removed with the lock.
pub struct RunLock {
    path: PathBuf,
    _lock: File,
}

impl RunLock {
    /// Locks a run; none if another program holds the lock.
    pub fn take(ledger: &Path, run: &RunId) -> Result<Option<Self>, CliError> {
        let mut name = ledger.as_os_str().to_owned();
        name.push(format!(".{run}.lock"));
        let path = PathBuf::from(name);
        let lock = File::create(&path).map_err(|error| {
            CliError::of_place(
                &error,
                format!("{} cannot be made: {error}", path.display()),
                "make the ledger's folder writable and see that its disk has room, or give another place with --ledger",
            )
        })?;
        Ok(lock.try_lock().is_ok().then_some(Self { path, _lock: lock }))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, only an empty file remains.
        let _removed = std::fs::remove_file(&self.path);
    }
}
