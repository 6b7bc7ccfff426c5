//! The process groups of all live workers, so that a program that is told to stop can end them.

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

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this program adopt orphaned processes of its workers, where the system supports that, so that it sees their
/// ends and the processor time that they used.
pub(crate) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // If this fails, orphans go to the system's first process, which reaps them as well.
        let _set = nix::sys::prctl::set_child_subreaper(true);
    }
}

/// Notes a group that has been started.
pub(crate) fn enter(group: i32) {
    groups().insert(group);
}

/// Whether a worker's process has ended. Where the system allows it, the process stays unreaped, so that its number is
/// not reused and its group can still be killed.
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

/// Kills a worker with its whole process group and waits for the worker to end; waits for the worker's children only
/// until the deadline.
pub(crate) fn end(leader: &mut Child, deadline: Instant) {
    let group = i32::try_from(leader.id()).unwrap_or(i32::MAX);
    // The group is removed before its number can be reused.
    groups().remove(&group);
    // The group may be gone already, which is fine.
    let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
    let _reaped = leader.wait();
    // Children are adopted by this program only after the leader is gone.
    while let Ok(status) = waitpid(Pid::from_raw(-group), Some(WaitPidFlag::WNOHANG))
        && Instant::now() < deadline
    {
        if status == WaitStatus::StillAlive {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Kills every worker of this program with its whole process group. Call it just before an exit: the owners of the
/// workers only see that they died.
pub fn end_all_workers() {
    for group in groups().iter() {
        // A group that is already gone is fine.
        let _gone = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}
