//! Mounts that differ for workers that run as root.
//!
//! CUDA writes to its process's entry in `/proc` when it starts, and fails if it cannot (seen on an H200 under
//! Landlock). The process ids are not known beforehand, so all of `/proc` has to be granted, which also contains the
//! settings of the whole system. Only root can write those, so a worker that runs as root gets them read-only.
//!
//! [`sealing`] mounts everything but the worker's own folders read-only, for root and for users with namespaces.

mod sealing;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;

pub(crate) use sealing::Own;

/// Named shared memory.
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";

/// What protects the system's settings in `/proc`, so that the entries of processes may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settings {
    /// The worker is not root, and only root can write the settings.
    Roots,
    /// The settings are mounted read-only for the worker, which also has its own shared memory.
    Sealed,
    /// The settings are mounted read-only for the whole container.
    SealedByContainer,
    /// Nothing: `/proc` must not be granted.
    Open,
    /// Nothing, on purpose: this measure is left out to find the one that stops a worker.
    Left,
}

/// Mounts the system's settings read-only for the calling thread and all that it starts, if that is needed, and then the
/// files of others. Also returns whether the latter succeeded.
///
/// # Errors
/// If mounts are left in a state in which no worker could run.
pub(crate) fn seal_in_thread(own: &Own) -> io::Result<(Settings, bool)> {
    if !geteuid().is_root() {
        return Ok((Settings::Roots, false));
    }
    if seal().is_ok() {
        return Ok((Settings::Sealed, own.seal_the_rest()?));
    }
    Ok((without_mounting(), false))
}

/// Containers mostly lack the privilege to mount; their runtime usually mounts the settings read-only.
fn without_mounting() -> Settings {
    match statvfs("/proc/sys") {
        Ok(found) if found.flags().contains(FsFlags::ST_RDONLY) => Settings::SealedByContainer,
        _ => Settings::Open,
    }
}

fn seal() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Mounts from here on must not propagate to the rest of the system.
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
    // Files that a worker leaves there vanish with it, and no other worker sees them.
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

/// Changes the flags of the mount at a path.
fn change(path: &Path, flags: MsFlags) -> nix::Result<()> {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
}

/// Whether an entry, or anything beneath it, is writable. Links lead to the processes' own entries.
fn may_be_written(entry: &fs::DirEntry) -> io::Result<bool> {
    let kind = entry.file_type()?;
    Ok(kind.is_dir() || !kind.is_symlink() && entry.metadata()?.permissions().mode() & 0o222 != 0)
}
