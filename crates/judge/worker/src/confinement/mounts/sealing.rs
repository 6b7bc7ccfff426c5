//! Everything but a worker's own folders mounted read-only, for that worker alone.
//!
//! Landlock decides who may write a file, but governs neither modes nor owners, times and attributes. On a read-only mount the
//! system refuses all of these, and does not note accesses either. A mount that is changed keeps its flags, so the exceptions
//! are copied before: clones of their mounts are laid over them afterwards. Devices can be used on read-only mounts.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc;

use super::SHARED_MEMORY;

use libc::{
    MOUNT_ATTR_NODEV as NO_DEVICES, MOUNT_ATTR_NOSUID as NO_PRIVILEGES, MOUNT_ATTR_RDONLY as READ_ONLY,
};

/// The folders that differ from all others.
#[derive(Debug)]
pub(crate) struct Own(Vec<Exception>);

#[derive(Debug)]
struct Exception {
    path: CString,
    flags: u64,
    /// A clone of what is mounted there, between the two steps; else [`NONE`].
    clone: AtomicI32,
}

const NONE: i32 = -1;

/// The structure of mount_setattr(2).
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

impl Own {
    /// The folders that a worker may write to.
    pub fn new<'p>(folders: impl Iterator<Item = &'p Path>) -> io::Result<Self> {
        let exception = |path: &Path, flags| -> io::Result<Exception> {
            Ok(Exception {
                path: CString::new(path.as_os_str().as_bytes())?,
                flags,
                clone: AtomicI32::new(NONE),
            })
        };
        // Each after those that it lies in.
        let mut exceptions = vec![
            exception("/dev".as_ref(), READ_ONLY | NO_PRIVILEGES)?,
            exception(SHARED_MEMORY.as_ref(), NO_PRIVILEGES | NO_DEVICES)?,
            exception("/proc".as_ref(), NO_PRIVILEGES | NO_DEVICES)?,
        ];
        for folder in folders {
            exceptions.push(exception(folder, NO_PRIVILEGES | NO_DEVICES)?);
        }
        Ok(Self(exceptions))
    }

    /// Mounts everything else read-only in the mount namespace of the calling thread, which must be one of its own. Returns
    /// whether the system allows it; allocates nothing.
    ///
    /// # Errors
    /// If it fails halfway.
    pub fn seal_the_rest(&self) -> Result<bool, Errno> {
        if self.0.iter().any(|exception| exception.take_clone().is_err())
            || set(libc::AT_FDCWD, c"/", READ_ONLY | NO_PRIVILEGES | NO_DEVICES).is_err()
        {
            self.0.iter().for_each(Exception::drop_clone);
            return Ok(false);
        }
        self.0.iter().try_for_each(Exception::lay_clone)?;
        Ok(true)
    }
}

impl Exception {
    fn take_clone(&self) -> Result<(), Errno> {
        let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as libc::c_uint;
        // SAFETY: the path is a string that outlives the call.
        let clone = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, self.path.as_ptr(), flags) };
        let clone = match Errno::result(clone) {
            // Nothing can be written to a folder that does not exist.
            Err(Errno::ENOENT) => return Ok(()),
            clone => clone? as i32,
        };
        self.clone.store(clone, Ordering::Relaxed);
        set(clone, c"", self.flags)
    }

    fn lay_clone(&self) -> Result<(), Errno> {
        let clone = self.clone.load(Ordering::Relaxed);
        if clone == NONE {
            return Ok(());
        }
        // SAFETY: both paths are strings that outlive the call.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                clone,
                c"".as_ptr(),
                libc::AT_FDCWD,
                self.path.as_ptr(),
                libc::MOVE_MOUNT_F_EMPTY_PATH,
            )
        };
        self.drop_clone();
        Errno::result(moved).map(drop)
    }

    fn drop_clone(&self) {
        let clone = self.clone.swap(NONE, Ordering::Relaxed);
        if clone != NONE {
            // SAFETY: the descriptor is this value's own, which no longer holds it.
            unsafe { libc::close(clone) };
        }
    }
}

/// Sets flags of all mounts at and below a place.
fn set(folder: i32, path: &CStr, flags: u64) -> Result<(), Errno> {
    let attributes = Attributes {
        set: flags,
        clear: 0,
        propagation: 0,
        namespace: 0,
    };
    // SAFETY: path and structure outlive the call, which only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            libc::AT_RECURSIVE | libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    Errno::result(result).map(drop)
}
