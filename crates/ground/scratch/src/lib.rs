//! Temporary folders that do not outlive their program for long.
//!
//! A [`Scratch`] is removed when it is dropped. A program that ends on a signal calls [`remove_all`] first, because nothing is
//! dropped then. What a killed program left is removed by the next one that makes such a folder: each folder holds a file that its
//! owner keeps locked, and the lock ends with the owner, in every case.
//!
//! ```
//! use gauntlet_scratch::Scratch;
//!
//! let scratch = Scratch::new()?;
//! let folder = scratch.path().to_owned();
//! std::fs::write(folder.join("operands"), [0; 16])?;
//! drop(scratch);
//! assert!(!folder.exists());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::libc::{O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::Uid;
use tempfile::TempDir;

/// Prefix of folder names, before random letters.
const PREFIX: &str = "gauntlet-";

/// The file in a folder that its owner keeps locked.
const LOCK: &str = "lock";

/// The folders of this program.
static LIVING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn living() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary folder.
#[derive(Debug)]
pub struct Scratch {
    folder: ManuallyDrop<TempDir>,
    _lock: File,
}

impl Scratch {
    /// A new folder where temporary files belong (`TMPDIR`, or `/tmp`). Folders that killed programs of this user left there are
    /// removed: they may hold gigabytes.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        clear_abandoned(place);
        // Noted while it is made, so that no interrupt comes between.
        let mut living = living();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // Locked before it gets the name that other programs look for.
        let fresh = folder.path().join("lock.new");
        let lock = File::create(&fresh)?;
        lock.lock()?;
        fs::rename(&fresh, folder.path().join(LOCK))?;
        living.insert(folder.path().to_owned());
        Ok(Self {
            folder: ManuallyDrop::new(folder),
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        living().remove(self.path());
        // SAFETY: it is not used again: this is the last that happens to the folder.
        drop(unsafe { ManuallyDrop::take(&mut self.folder) });
    }
}

/// How often to try removing a folder in which another thread of this program, or a process that is just ending, still makes files.
const TRIES: usize = 10;

/// Removes all folders of this program. Call it just before an exit: no folder can be made, or dropped, from now on, and a thread
/// that tries waits for the end.
pub fn remove_all() {
    let living = ManuallyDrop::new(living());
    for folder in living.iter() {
        let _gone = (0..TRIES).any(|_| fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
}

/// Removes the folders of this user that no living program owns.
fn clear_abandoned(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // Not a link, and nothing of another user, who may put there what they like.
        let is_own = fs::symlink_metadata(entry.path())
            .is_ok_and(|found| found.is_dir() && found.uid() == Uid::effective().as_raw());
        // A folder without a lock file is just being made, or does not belong to such a program.
        if is_own && is_abandoned(&entry.path().join(LOCK)) {
            // Another program may be removing it too; the second one finds nothing.
            let _removed = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the lock file exists and no process holds a lock on it. Opening it does not block, even if a pipe lies in its place.
fn is_abandoned(lock: &Path) -> bool {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        .open(lock);
    opened.is_ok_and(|lock| lock.metadata().is_ok_and(|found| found.is_file()) && lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_abandoned_folders_are_cleared() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (used, abandoned, new) = (
            folder("gauntlet-used"),
            folder("gauntlet-abandoned"),
            folder("gauntlet-new"),
        );
        let stranger = folder("stranger");
        File::create(abandoned.join(LOCK)).unwrap();
        fs::write(abandoned.join("operands"), "many").unwrap();
        File::create(stranger.join(LOCK)).unwrap();
        let held = File::create(used.join(LOCK)).unwrap();
        held.lock().unwrap();
        // Traps: opening a pipe would wait, and links lead elsewhere.
        let (pipe, linked) = (folder("gauntlet-pipe"), folder("gauntlet-linked"));
        mkfifo(&pipe.join(LOCK), Mode::S_IRWXU).unwrap();
        symlink(stranger.join(LOCK), linked.join(LOCK)).unwrap();
        symlink(&stranger, place.path().join("gauntlet-link")).unwrap();
        let own = Scratch::new_in(place.path()).unwrap();
        assert!(!abandoned.exists());
        for kept in [&used, &new, &stranger, &pipe, &linked] {
            assert!(kept.exists(), "{}", kept.display());
        }
        assert!(stranger.join(LOCK).exists());
        // One's own folder is not abandoned.
        let second = Scratch::new_in(place.path()).unwrap();
        assert!(own.path().exists());
        let path = second.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(second);
        assert!(!path.exists() && own.path().exists());
    }
}
