//! Process 1 of a worker's PID namespace: it mounts `/proc`, reaps orphans, and takes the whole namespace with it when
//! it ends. It ends when it is killed, or when the coordinator is gone and so the other end of its socket is closed.
//!
//! The signal at a parent's death (`PR_SET_PDEATHSIG` of prctl(2)) does not suffice: with it, 6 of 60 coordinators that
//! were killed or interrupted left their process 1 behind. The kernel sends that signal in the name of the thread that
//! started process 1. This thread is confined by Landlock afterwards, and since its version 6 Landlock refuses signals to
//! processes outside of the sender's domain. Process 1 presumably stayed where that thread was the last of the coordinator.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setpgid};

use super::mounts::Own;

/// How long to wait for a killed namespace whose worker never started.
const LINGERING: Duration = Duration::from_millis(500);

/// Process 1 of a namespace, as its parent sees it. Dropping it kills every process of the namespace.
#[derive(Debug)]
pub(crate) struct Init {
    process: Pid,
    is_reaped: bool,
    /// This end of the socket; process 1 ends when it is closed.
    lifeline: UnixStream,
    /// Whether it has mounted the files of others read-only.
    is_sealed: bool,
}

impl Init {
    /// Waits until process 1 has mounted `/proc`. `lifeline` is the other end of the socket that it has.
    pub fn when_ready(process: Pid, lifeline: UnixStream) -> io::Result<Self> {
        let mut init = Self {
            process,
            is_reaped: false,
            lifeline,
            is_sealed: false,
        };
        let mut bytes = [0; 4];
        init.lifeline
            .read_exact(&mut bytes)
            .map_err(|_| io::Error::other("process 1 of the namespace ended early"))?;
        match i32::from_ne_bytes(bytes) {
            error if error > 0 => return Err(io::Error::from_raw_os_error(error)),
            ready => init.is_sealed = ready == SEALED,
        }
        Ok(init)
    }

    /// Whether the files of others are mounted read-only in its namespace.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
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

/// What process 1 says if the files of others are mounted read-only: no number of an error.
const SEALED: i32 = -1;

/// Runs process 1 in a fresh fork of this program; only makes system calls. Writes 0, [`SEALED`] or an error number to its end
/// of the socket once `/proc` is mounted, and all but the worker's `own` folders read-only.
pub(crate) fn serve(lifeline: RawFd, own: Option<&Own>) -> ! {
    let prepared = prepare(lifeline, own);
    let word = match &prepared {
        Ok((_, true)) => SEALED,
        Ok((_, false)) => 0,
        Err(errno) => *errno as i32,
    };
    let bytes = word.to_ne_bytes();
    // SAFETY: `bytes` outlives the call, which takes a descriptor that this process owns.
    unsafe { libc::write(lifeline, bytes.as_ptr().cast(), bytes.len()) };
    if let Ok((ends, _)) = &prepared {
        reap_while_watched(lifeline, ends);
    }
    // SAFETY: `_exit` may be called in a forked child.
    unsafe { libc::_exit(i32::from(prepared.is_err())) }
}

/// Mounts `/proc`, and returns what becomes readable when a process of the namespace ends, and whether the files of others
/// are mounted read-only.
fn prepare(lifeline: RawFd, own: Option<&Own>) -> Result<(SignalFd, bool), Errno> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // Handlers of this program must not run here.
    SigSet::all().thread_block()?;
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of this program.
    unsafe { sigaction(Signal::SIGCHLD, &default) }?;
    close_all_but(lifeline)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)?;
    let is_sealed = own.map_or(Ok(false), Own::seal_the_rest)?;
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGCHLD);
    Ok((SignalFd::with_flags(&ends, SfdFlags::SFD_NONBLOCK)?, is_sealed))
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

/// Reaps orphans until the coordinator's end of the socket is closed.
fn reap_while_watched(lifeline: RawFd, ends: &SignalFd) {
    // SAFETY: this process owns the descriptor and closes it by its end only.
    let lifeline = unsafe { BorrowedFd::borrow_raw(lifeline) };
    loop {
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status == WaitStatus::StillAlive {
                break;
            }
        }
        let mut events = [
            PollFd::new(lifeline, PollFlags::POLLIN),
            PollFd::new(ends.as_fd(), PollFlags::POLLIN),
        ];
        let is_over = match poll(&mut events, PollTimeout::NONE) {
            // The coordinator writes nothing, so that any event means its end.
            Ok(_) => events[0].any().unwrap_or(true),
            Err(error) => error != Errno::EINTR,
        };
        if is_over {
            return;
        }
        while let Ok(Some(_)) = ends.read_signal() {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::namespaces::{Namespace, way};
    use super::*;

    /// A coordinator that is killed closes its end of the socket and does nothing else.
    #[test]
    fn process_1_ends_with_the_coordinator_s_end_of_its_socket() {
        thread::spawn(|| {
            let way = match way() {
                Ok(way) => way,
                Err(why) => return println!("skipped: {why}"),
            };
            let namespace = Namespace::make(way, None).unwrap();
            let (mut init, _passage) = namespace.split(std::path::Path::new("/")).unwrap();
            init.lifeline = UnixStream::pair().unwrap().0;
            init.reap(Instant::now() + Duration::from_secs(10));
            assert!(init.is_reaped);
        })
        .join()
        .unwrap();
    }
}
