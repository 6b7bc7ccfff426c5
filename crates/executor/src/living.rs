//! The process groups of all workers alive, so that a program that is told to stop takes them with it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn living() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a group that has been started.
pub(crate) fn enter(group: i32) {
    living().insert(group);
}

/// Forgets a group before its number can be given to another.
pub(crate) fn leave(group: i32) {
    living().remove(&group);
}

/// Kills every worker of this program with all of its process group; for the moment before an exit, since their
/// owners only see that they died.
pub fn end_all_workers() {
    for group in living().iter() {
        // A group that is gone is what was wanted.
        let _gone = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}
