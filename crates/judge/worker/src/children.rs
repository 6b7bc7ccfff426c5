//! The process groups of all live workers, so that a program that is told to stop can end them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::confinement::Init;
use crate::leader::Leader;

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

/// Kills a worker with its whole process group and namespace and waits for the worker to end; waits for all others only
/// until the deadline.
pub(crate) fn end(leader: &mut Leader, init: Option<&mut Init>, deadline: Instant) {
    let group = leader.pid();
    // The group is removed before its number can be reused.
    groups().remove(&group.as_raw());
    // The group may be gone already, which is fine.
    let _gone = killpg(group, Signal::SIGKILL);
    if let Some(init) = &init {
        init.kill();
    }
    leader.end();
    // Children are adopted by this program, or by process 1 of their namespace, only after the leader is gone.
    while let Ok(status) = waitpid(Pid::from_raw(-group.as_raw()), Some(WaitPidFlag::WNOHANG))
        && Instant::now() < deadline
    {
        if status == WaitStatus::StillAlive {
            thread::sleep(Duration::from_millis(1));
        }
    }
    if let Some(init) = init {
        init.reap(deadline);
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
