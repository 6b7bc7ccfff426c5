//! What some workers are allowed beyond what every worker is.

use std::path::PathBuf;

/// What a worker is allowed beyond what every worker is. Only Gauntlet's own executors are given any of it: what others
/// wrote has nothing here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Folders beside its own that it may read and write: what an executor keeps from one process to the next, such as
    /// compiled kernels.
    pub folders: Vec<PathBuf>,
    /// Whether a tool runs it that looks into it, a sanitizer or a profiler: those talk to their target over sockets,
    /// trace it, and need root's privileges over performance counters where they have them.
    pub instruments: bool,
    /// Measures left out, to find out which of them stops a worker (see [`culprits`](super::culprits)).
    pub(crate) without: Vec<Measure>,
}

/// A part of what holds a worker, which can be left out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Settings of the system mounted read-only, for root.
    Mounts,
    /// Files, and whom a worker reaches: Landlock.
    Files,
    /// Root's privileges taken away.
    Privileges,
    /// System calls refused: seccomp.
    Calls,
    /// Limits that the kernel keeps for each process.
    Resources,
}

impl Measure {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::Mounts,
        Self::Files,
        Self::Privileges,
        Self::Calls,
        Self::Resources,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mounts => "read-only mounts in /proc and shared memory of its own",
            Self::Files => "rules for files (Landlock)",
            Self::Privileges => "privileges of root taken away (capabilities)",
            Self::Calls => "the filter of system calls (seccomp)",
            Self::Resources => "limits of each process (setrlimit)",
        }
    }
}

impl Allowances {
    pub(crate) fn has(&self, measure: Measure) -> bool {
        !self.without.contains(&measure)
    }
}
