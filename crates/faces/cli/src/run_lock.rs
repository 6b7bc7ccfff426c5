//! A lock on a run in progress, so that no other program resumes it at the same time; and one on beginning a run.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
        loop {
            let lock = File::create(&path).map_err(|error| {
                CliError::of_place(
                    &error,
                    format!("{} cannot be made: {error}", path.display()),
                    "make the ledger's folder writable and see that its disk has room, or give another place with --ledger",
                )
            })?;
            if lock.try_lock().is_err() {
                return Ok(None);
            }
            if is_at(&lock, &path) {
                return Ok(Some(Self { path, _lock: lock }));
            }
            // Its last holder has removed it since it was opened, so the next program would lock another file.
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// How long to wait for another program that is beginning a run, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// Keeps other programs from beginning or resuming a run of a ledger until it is dropped: none sees a new run before its lock is held.
/// It locks the ledger's folder. A program that holds on to that is not waited for longer, since the lock of the run is what counts.
pub fn beginning(ledger: &Path) -> Option<File> {
    let folder = match ledger.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let lock = File::open(folder).ok()?;
    let start = Instant::now();
    while let Err(std::fs::TryLockError::WouldBlock) = lock.try_lock() {
        if start.elapsed() > PATIENCE {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    Some(lock)
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, only an empty file remains.
        let _removed = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn run() -> RunId {
        RunId::new("20260101-000000-000001")
    }

    #[test]
    fn a_run_has_one_holder() {
        let place = tempfile::tempdir().unwrap();
        let ledger = place.path().join("ledger.sqlite");
        let take = || RunLock::take(&ledger, &run()).unwrap();
        let first = take().unwrap();
        assert!(take().is_none());
        drop(first);
        // Programs that take it, let go of it and remove its file, all the time: at most one has it.
        let holders = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(lock) = take() {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            holders.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn one_program_at_a_time_begins_a_run() {
        let place = tempfile::tempdir().unwrap();
        let ledger = place.path().join("ledger.sqlite");
        let first = beginning(&ledger).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| beginning(&ledger));
            assert!(!second.is_finished());
            drop(first);
            assert!(second.join().unwrap().is_some());
        });
        assert!(beginning(&place.path().join("nowhere/ledger.sqlite")).is_none());
    }
}
