//! The hold that a program has on the run it plays, so that no other resumes it at the same time.

use std::fs::File;
use std::path::{Path, PathBuf};

use gauntlet_judge::ledger::RunId;

use crate::trouble::Trouble;

/// A locked file beside the ledger. The lock goes with the process, however it ends; the file with the lease.
pub struct Lease {
    path: PathBuf,
    _lock: File,
}

impl Lease {
    /// Takes hold of a run; none if another program has it.
    pub fn take(ledger: &Path, run: &RunId) -> Result<Option<Self>, Trouble> {
        let mut name = ledger.as_os_str().to_owned();
        name.push(format!(".{run}.lock"));
        let path = PathBuf::from(name);
        let lock = File::create(&path).map_err(|error| {
            Trouble::of_place(
                &error,
                format!("{} cannot be made: {error}", path.display()),
                "make the ledger's folder writable and see that its disk has room, or give another place with --ledger",
            )
        })?;
        Ok(lock.try_lock().is_ok().then_some(Self { path, _lock: lock }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Left behind, it would only be an empty file.
        let _removed = std::fs::remove_file(&self.path);
    }
}
