//! Cheats that change how the operating system treats the rival, or their own process.

use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

use super::disturbances::{UNSEEN, coordinator_is_visible, siblings, threads};
use super::thefts::thwarted;
use super::work::{Trick, Work};

/// What is done to every thread of the coordinator's other workers.
type Deed = fn(Pid) -> Result<(), Errno>;

/// Does something to the rival's threads after each answer, and computes honestly.
pub struct Meddles {
    what: &'static str,
    deed: Deed,
}

impl Meddles {
    /// Gives the rival the lowest priority.
    pub fn lowering() -> Self {
        Self {
            what: "the rival's priority cannot be lowered",
            deed: |thread| {
                const LOWEST: libc::c_int = 19;
                // SAFETY: the call takes numbers only and touches no memory of this process.
                let result =
                    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread.as_raw().unsigned_abs(), LOWEST) };
                Errno::result(result).map(drop)
            },
        }
    }

    /// Puts the rival into the scheduling class that runs when nothing else does.
    pub fn idling() -> Self {
        Self {
            what: "the rival's scheduling class cannot be changed",
            deed: |thread| set_class(thread, libc::SCHED_IDLE, 0),
        }
    }
}

impl Trick for Meddles {
    fn asked(&mut self, _work: &mut Work) {
        for thread in threads_of_siblings() {
            match (self.deed)(thread) {
                // It has ended meanwhile.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => thwarted(&format!("{}: {error}", self.what)),
            }
        }
    }
}

/// Asks for real-time priority for itself, at a build.
pub fn ask_for_real_time() -> io::Result<()> {
    Ok(set_class(Pid::from_raw(0), libc::SCHED_FIFO, 1)?)
}

/// Changes the scheduling class of a thread.
fn set_class(thread: Pid, class: libc::c_int, priority: libc::c_int) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the kernel reads the parameters, which live through the call, and writes to no memory of this process.
    let result = unsafe { libc::sched_setscheduler(thread.as_raw(), class, &raw const parameters) };
    Errno::result(result).map(drop)
}

/// The threads of the coordinator's other workers. Exits as thwarted where the coordinator itself cannot be seen: then
/// its workers cannot be either.
fn threads_of_siblings() -> Vec<Pid> {
    if !coordinator_is_visible() {
        thwarted(UNSEEN);
    }
    siblings().into_iter().flat_map(threads).collect()
}
