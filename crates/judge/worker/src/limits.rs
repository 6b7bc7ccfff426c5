//! Limits on the resources of a worker.

use std::thread;

use gauntlet_device::memory_limit;
use sysinfo::{MemoryRefreshKind, System};

/// The resources that a worker, with all processes of its group, may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory of all its processes together.
    pub memory: u64,
    /// Processes at a time.
    pub processes: usize,
    /// Threads of all its processes at a time.
    pub threads: usize,
    /// Bytes of all files in its folder.
    pub folder: u64,
    /// Bytes of any one file that it writes.
    pub file: u64,
    /// Files that each of its processes may hold open.
    pub open_files: u64,
    /// Bytes written to standard error over its life.
    pub standard_error: u64,
}

/// The lower bound: parallel compilers and Python pools start one process per processor.
const MIN_PROCESSES: usize = 256;

/// Libraries start pools of one thread per processor, and a process may use several of these libraries.
const THREADS_FOR_EACH_PROCESSOR: usize = 64;

/// The lower bound on machines with fewer processors.
const MIN_THREADS: usize = 4096;

impl Default for Limits {
    /// By the size of this machine: four fifths of its memory, or of this container's.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            memory: total_memory() / 5 * 4,
            processes: MIN_PROCESSES.max(4 * processors),
            threads: MIN_THREADS.max(THREADS_FOR_EACH_PROCESSOR * processors),
            folder: 16 << 30,
            file: 8 << 30,
            open_files: 4096,
            standard_error: 64 << 20,
        }
    }
}

/// Bytes of this machine's memory, or of this container's share; `u64::MAX` where the system does not say.
fn total_memory() -> u64 {
    let Ok(mut system) = System::new() else {
        return u64::MAX;
    };
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    let container = system
        .cgroup_limits()
        .map_or(u64::MAX, |limits| limits.total_memory);
    match system
        .total_memory()
        .min(container)
        .min(memory_limit().unwrap_or(u64::MAX))
    {
        0 => u64::MAX,
        total => total,
    }
}
