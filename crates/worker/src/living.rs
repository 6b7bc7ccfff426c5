//! The process groups of all workers alive, so that a program that is told to stop takes them with it.

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
#[cfg(target_os = "linux")]
use nix::sys::wait::{Id, waitid};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn living() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has processes whose parents in a worker are gone come to this program, which then sees what they took, and their
/// ends, where the system can.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // Without it they go to the system's first process, which lets go of them as well.
        let _set = nix::sys::prctl::set_child_subreaper(true);
    }
}

/// Notes a group that has been started.
pub(crate) fn enter(group: i32) {
    living().insert(group);
}

/// Whether a worker's process has ended. It keeps its number where the system can tell without giving it away, so that its group can
/// still be killed.
pub(crate) fn has_ended(leader: &mut Child) -> bool {
    #[cfg(target_os = "linux")]
    {
        let id = Id::Pid(Pid::from_raw(i32::try_from(leader.id()).unwrap_or(i32::MAX)));
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(id, flags), Ok(WaitStatus::StillAlive))
    }
    #[cfg(not(target_os = "linux"))]
    {
        !matches!(leader.try_wait(), Ok(None))
    }
}

/// Kills a worker with all of its process group, and awaits their ends; those of the worker's children only until the
/// deadline.
pub(crate) fn end(leader: &mut Child, deadline: Instant) {
    let group = i32::try_from(leader.id()).unwrap_or(i32::MAX);
    // Forgotten before its number can be given to another.
    living().remove(&group);
    // The group may be gone already; that is what was wanted.
    let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
    let _reaped = leader.wait();
    // Only when the leader is gone do its children come here.
    while let Ok(status) = waitpid(Pid::from_raw(-group), Some(WaitPidFlag::WNOHANG))
        && Instant::now() < deadline
    {
        if status == WaitStatus::StillAlive {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Kills every worker of this program with all of its process group; for the moment before an exit, since their
/// owners only see that they died.
pub fn end_all_workers() {
    for group in living().iter() {
        // A group that is gone is what was wanted.
        let _gone = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}
