//! Which processor each thread stays on.
//!
//! A scheduler may wake a thread on the processor of the one that woke it and leave it there for milliseconds, so that
//! two threads take turns on one processor while another idles. On a virtual machine of two processors calls of a few
//! milliseconds then took as long as with one thread. Threads that stay where they were put do not; others at least do not wait
//! awake for one another there.

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

/// Processors, one for each thread of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Processors(Vec<usize>);

impl Processors {
    /// One for each of `threads`, of those that the calling thread may use; none if there are too few.
    pub fn allowed(threads: usize) -> Option<Self> {
        let set = sched_getaffinity(SELF).ok()?;
        let processors: Vec<usize> = (0..CpuSet::count())
            .filter(|processor| set.is_set(*processor).unwrap_or(false))
            .take(threads)
            .collect();
        (processors.len() == threads).then_some(Self(processors))
    }

    /// Keeps the calling thread on the processor of thread number `thread`.
    pub fn pin(&self, thread: usize) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        set.set(self.0[thread])?;
        sched_setaffinity(SELF, &set)
    }
}

/// The processor that the calling thread runs on, where the system says so.
pub(crate) fn here() -> Option<usize> {
    // An interpreter has no processors.
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
