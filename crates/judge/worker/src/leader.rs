//! A worker's first process, which leads its process group.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
#[cfg(target_os = "linux")]
use nix::sys::wait::{Id, waitid};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A child of this program, which is waited for by its id: the library's own handle may belong to a process that only
/// started it.
#[derive(Debug)]
pub(crate) struct Leader {
    process: Pid,
    status: Option<ExitStatus>,
}

impl Leader {
    pub fn new(process: Pid) -> Self {
        Self {
            process,
            status: None,
        }
    }

    pub fn of(child: &Child) -> Self {
        Self::new(Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX)))
    }

    pub fn pid(&self) -> Pid {
        self.process
    }

    /// Whether the process has ended. Where the system allows it, the process stays unreaped, so that its number is not
    /// reused and its group can still be killed.
    pub fn has_ended(&mut self) -> bool {
        #[cfg(target_os = "linux")]
        {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            self.status.is_some()
                || !matches!(waitid(Id::Pid(self.process), flags), Ok(WaitStatus::StillAlive))
        }
        #[cfg(not(target_os = "linux"))]
        {
            self.try_wait().is_some()
        }
    }

    /// The exit status, if the process has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.wait_with(Some(WaitPidFlag::WNOHANG))
    }

    /// Kills the process and waits for its end.
    pub fn end(&mut self) {
        if self.status.is_none() {
            let _gone = kill(self.process, Signal::SIGKILL);
            self.wait_with(None);
        }
    }

    fn wait_with(&mut self, flags: Option<WaitPidFlag>) -> Option<ExitStatus> {
        while self.status.is_none() {
            match waitpid(self.process, flags) {
                Ok(WaitStatus::Exited(_, code)) => self.status = Some(ExitStatus::from_raw(code << 8)),
                Ok(WaitStatus::Signaled(_, signal, _)) => {
                    self.status = Some(ExitStatus::from_raw(signal as i32));
                }
                Err(Errno::EINTR) => {}
                _ => break,
            }
        }
        self.status
    }
}
