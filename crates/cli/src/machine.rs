//! A lock on the CPU or GPU for measuring commands: two at the same time would disturb each other.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::arguments::MeasuredExecutor;
use crate::error::say_line;

/// A locked file in the folder for temporary files. The lock ends with the process, in every case; the file stays, so
/// that all later programs lock the same one.
#[must_use = "what is held is let go of when this is dropped"]
pub struct Hold {
    _lock: Option<File>,
}

impl Hold {
    /// Locks an executor's hardware. If another program holds the lock, prints its process and waits for it to end.
    pub fn take(executor: MeasuredExecutor) -> Self {
        let (name, words) = match executor {
            MeasuredExecutor::Cpu => ("cpu".to_owned(), "this machine's CPU".to_owned()),
            MeasuredExecutor::Cuda => {
                let variable = |name| std::env::var(name).unwrap_or_default();
                let gpu = gpu(&variable("GAUNTLET_GPU"), &variable("CUDA_VISIBLE_DEVICES"));
                (format!("gpu-{gpu}"), format!("GPU {gpu}"))
            }
        };
        let path = std::env::temp_dir().join(format!("gauntlet-measuring-{name}.lock"));
        let lock = open(&path).and_then(|file| await_lock(&file, &words).map(|()| file));
        if let Err(error) = &lock {
            say_line(format_args!(
                "note: {} cannot be locked ({error}): should another program measure on {words} now, neither result is \
                 worth anything",
                path.display()
            ));
        }
        Self { _lock: lock.ok() }
    }
}

/// The GPU that workers use, under the same name for all programs: with a list of visible devices, the driver counts
/// only those.
fn gpu(ordinal: &str, shown: &str) -> String {
    let ordinal = ordinal.parse().unwrap_or(0_usize);
    let shown = shown.split(',').nth(ordinal).unwrap_or_default();
    let name: String = shown
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    if name.is_empty() {
        ordinal.to_string()
    } else {
        name
    }
}

/// Opens the file; if it does not exist, creates it with access for every user of the machine.
fn open(path: &Path) -> io::Result<File> {
    let there = || OpenOptions::new().read(true).write(true).open(path);
    match there() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o666)
        .open(path);
    match made {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(0o666))?;
            Ok(file)
        }
        // Another program created it first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => there(),
        Err(error) => Err(error),
    }
}

/// Locks the whole file with a POSIX lock: such locks report their holder, and workers do not inherit them.
fn await_lock(file: &File, words: &str) -> io::Result<()> {
    let whole = whole_file();
    match fcntl(file, FcntlArg::F_SETLK(&whole)) {
        Err(Errno::EACCES | Errno::EAGAIN) => {}
        locked => return Ok(locked.map(drop)?),
    }
    let mut holder = whole_file();
    fcntl(file, FcntlArg::F_GETLK(&mut holder))?;
    // The holder may have ended since, and a process outside this container has no known number.
    let program = match holder.l_pid {
        1.. => format!("process {}", holder.l_pid),
        _ => "another program".to_owned(),
    };
    say_line(format_args!(
        "{program} is measuring on {words}; waiting for it to end, since two at once would measure each other"
    ));
    loop {
        match fcntl(file, FcntlArg::F_SETLKW(&whole)) {
            Err(Errno::EINTR) => {}
            locked => return Ok(locked.map(drop)?),
        }
    }
}

fn whole_file() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_one_name_for_all_programs() {
        for (ordinal, shown, name) in [
            ("", "", "0"),
            ("3", "", "3"),
            ("", "3", "3"),
            ("1", "2, 5", "5"),
            ("0", "GPU-8932f937-d72c", "GPU-8932f937-d72c"),
            ("0", "../x", "x"),
        ] {
            assert_eq!(gpu(ordinal, shown), name, "{ordinal} of {shown}");
        }
    }
}
