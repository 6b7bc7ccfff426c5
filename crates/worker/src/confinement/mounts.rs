//! What root's workers find mounted otherwise than the rest of the system.
//!
//! CUDA writes to its process's entry in `/proc` when it starts, and gives up if it cannot (seen on an H200 under
//! Landlock). Which processes there will be is not known beforehand, so all of `/proc` has to be granted, where the
//! settings of the whole system lie too. They are root's; a worker that is root is shown them read-only.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;

/// Memory that processes share by name.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// What keeps a worker from the system's settings in `/proc`, so that its processes' entries may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settings {
    /// The worker is not root, and they are root's.
    Roots,
    /// They are mounted read-only for the worker, which also has shared memory of its own.
    Sealed,
    /// They are mounted read-only for all of this container.
    SealedByContainer,
    /// Nothing: they must not be granted.
    Open,
    /// Nothing, on purpose: what stops a worker is being looked for.
    Left,
}

/// Seals the system's settings for the calling thread and all that it starts, if they need it.
pub(crate) fn seal_in_thread() -> Settings {
    if !geteuid().is_root() {
        return Settings::Roots;
    }
    if seal().is_ok() {
        return Settings::Sealed;
    }
    // Containers mostly lack the privilege, and have them sealed by what runs the container.
    match statvfs("/proc/sys") {
        Ok(found) if found.flags().contains(FsFlags::ST_RDONLY) => Settings::SealedByContainer,
        _ => Settings::Open,
    }
}

fn seal() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What is mounted from here on is not to show elsewhere.
    change("/".as_ref(), MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let is_process = entry.file_name().to_string_lossy().parse::<u32>().is_ok();
        if is_process || !may_be_written(&entry)? {
            continue;
        }
        let path = entry.path();
        mount(Some(&path), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        change(
            &path,
            read_only | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
        )?;
    }
    // What a worker leaves there goes with it, and no other sees it.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        SHARED_MEMORY,
        Some("tmpfs"),
        flags,
        Some("mode=1777"),
    )?;
    Ok(())
}

/// Changes how what is mounted at a path is mounted.
fn change(path: &Path, flags: MsFlags) -> nix::Result<()> {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
}

/// Whether something may be written at or beneath an entry. Links lead to processes' own entries.
fn may_be_written(entry: &fs::DirEntry) -> io::Result<bool> {
    let kind = entry.file_type()?;
    Ok(kind.is_dir() || !kind.is_symlink() && entry.metadata()?.permissions().mode() & 0o222 != 0)
}
