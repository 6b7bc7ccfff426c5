//! Pins threads to processors.
//!
//! A scheduler may wake a thread on the processor of the thread that woke it and leave it there for milliseconds, so
//! two threads share one processor while another idles. On a virtual machine with two processors, calls of a few
//! milliseconds then took as long as with one thread. Pinned threads avoid this; unpinned threads that land on the
//! caller's processor sleep instead of spinning (see `Pool`).

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// The process id that stands for the calling thread.
const SELF: Pid = Pid::from_raw(0);

/// Processors, one per thread of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Processors(Vec<usize>);

impl Processors {
    /// Picks one processor per thread from those that the calling thread may use; `None` if there are too few.
    pub fn allowed(threads: usize) -> Option<Self> {
        let set = sched_getaffinity(SELF).ok()?;
        let processors: Vec<usize> = (0..CpuSet::count())
            .filter(|processor| set.is_set(*processor).unwrap_or(false))
            .take(threads)
            .collect();
        (processors.len() == threads).then_some(Self(processors))
    }

    /// Pins the calling thread to the processor of thread number `thread`.
    pub fn pin(&self, thread: usize) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        set.set(self.0[thread])?;
        sched_setaffinity(SELF, &set)
    }
}

/// The processor that the calling thread runs on, if the system reports it.
pub(crate) fn here() -> Option<usize> {
    // Miri does not emulate this call.
    (!cfg!(miri)).then(sched_getcpu)?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        std::thread::spawn(|| {
            let processors = Processors::allowed(1).unwrap();
            processors.pin(0).unwrap();
            let now = sched_getaffinity(SELF).unwrap();
            let allowed: Vec<usize> = (0..CpuSet::count())
                .filter(|at| now.is_set(*at).unwrap())
                .collect();
            assert_eq!(allowed, processors.0);
            assert!(Processors::allowed(2).is_none());
        })
        .join()
        .unwrap();
    }
}
