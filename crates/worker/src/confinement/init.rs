//! Process 1 of a worker's PID namespace: it mounts `/proc`, reaps orphans, and takes the whole namespace with it when
//! it is killed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setpgid};

/// How long to wait for a killed namespace whose worker never started.
const LINGERING: Duration = Duration::from_millis(500);

/// Process 1 of a namespace, as its parent sees it. Dropping it kills every process of the namespace.
#[derive(Debug)]
pub(crate) struct Init {
    process: Pid,
    is_reaped: bool,
}

impl Init {
    pub fn new(process: Pid) -> Self {
        Self {
            process,
            is_reaped: false,
        }
    }

    pub fn id(&self) -> Pid {
        self.process
    }

    /// Kills every process of the namespace.
    pub fn kill(&self) {
        if !self.is_reaped {
            // It may have ended already, which is fine.
            let _gone = kill(self.process, Signal::SIGKILL);
        }
    }

    /// Waits for the end after a kill, which comes only after the worker has been waited for.
    pub fn reap(&mut self, deadline: Instant) {
        while !self.is_reaped {
            match waitpid(self.process, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(WaitStatus::StillAlive) => return,
                Ok(_) | Err(_) => self.is_reaped = true,
            }
        }
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.kill();
        self.reap(Instant::now() + LINGERING);
    }
}

/// Waits until process 1 has mounted `/proc`.
pub(crate) fn await_ready(ready: OwnedFd) -> io::Result<()> {
    let mut bytes = [0; 4];
    File::from(ready)
        .read_exact(&mut bytes)
        .map_err(|_| io::Error::other("process 1 of the namespace ended early"))?;
    match i32::from_ne_bytes(bytes) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Runs process 1 in a fresh fork of this program; only makes system calls. Writes 0 or an error number to `told` once
/// `/proc` is mounted.
pub(crate) fn serve(told: RawFd) -> ! {
    let ready = prepare(told);
    let errno = ready.err().map_or(0, |errno| errno as i32);
    let bytes = errno.to_ne_bytes();
    // SAFETY: `bytes` outlives the call. Both calls take a descriptor that this process owns, and nothing uses it
    // afterwards.
    unsafe {
        libc::write(told, bytes.as_ptr().cast(), bytes.len());
        libc::close(told);
    }
    if errno != 0 {
        // SAFETY: `_exit` may be called in a forked child.
        unsafe { libc::_exit(1) }
    }
    reap_for_ever()
}

fn prepare(told: RawFd) -> Result<(), Errno> {
    // It ends with the thread that made it, and so with the coordinator.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // Handlers of this program must not run here.
    SigSet::all().thread_block()?;
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of this program.
    unsafe { sigaction(Signal::SIGCHLD, &default) }?;
    close_all_but(told)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
}

/// Closes all files: an open end of another worker's pipe would hide that worker's end.
fn close_all_but(kept: RawFd) -> Result<(), Errno> {
    let close = |first: u32, last: u32| {
        // SAFETY: this process uses no descriptor other than `kept` from here on.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        Errno::result(result).map(drop)
    };
    let kept = u32::try_from(kept.as_raw_fd()).map_err(|_| Errno::EBADF)?;
    if kept > 0 {
        close(0, kept - 1)?;
    }
    close(kept + 1, u32::MAX)
}

fn reap_for_ever() -> ! {
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGCHLD);
    loop {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status == WaitStatus::StillAlive {
                break;
            }
        }
        // The signal is blocked, so one that came meanwhile is pending and ends the wait at once.
        let _signal = ends.wait();
    }
}
