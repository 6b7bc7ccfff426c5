//! Additional permissions of some workers.

use std::path::PathBuf;

/// Permissions of a worker beyond those of every worker. Only Gauntlet's own executors get any; foreign workers get
/// none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Folders besides its own that it may read and write, for data that an executor keeps from one process to the
    /// next, such as compiled kernels.
    pub folders: Vec<PathBuf>,
    /// Whether a sanitizer or a profiler runs the worker: these tools talk to their target over sockets, trace it, and
    /// need root's privileges over performance counters where they have them.
    pub instruments: bool,
    /// Whether it may run without a PID namespace if it starts only so; then all later workers of this program run
    /// without one. Only for a worker of which a candidate controls nothing before it has described itself.
    pub may_share_processes: bool,
    /// Measures left out to find the one that stops a worker (see [`culprits`](super::culprits)).
    pub(crate) without: Vec<Measure>,
}

/// A part of a worker's confinement, which can be left out separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A PID namespace of its own.
    Processes,
    /// The system's settings and the files of others mounted read-only.
    Mounts,
    /// Access to files and to other processes: Landlock.
    Files,
    /// Root's privileges, dropped.
    Privileges,
    /// System calls refused: seccomp.
    Calls,
    /// Per-process resource limits of the kernel.
    Resources,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 6] = [
        Self::Processes,
        Self::Mounts,
        Self::Files,
        Self::Privileges,
        Self::Calls,
        Self::Resources,
    ];

    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processes => "a PID namespace of its own",
            Self::Mounts => "read-only mounts, and shared memory of its own",
            Self::Files => "rules for files (Landlock)",
            Self::Privileges => "privileges of root taken away (capabilities)",
            Self::Calls => "the filter of system calls (seccomp)",
            Self::Resources => "limits of each process (setrlimit)",
        }
    }
}

impl Allowances {
    /// Everything but to live on after its starter: of all measures, a PID namespace alone.
    pub(crate) fn all() -> Self {
        let mut without = Measure::ALL.to_vec();
        without.retain(|measure| *measure != Measure::Processes);
        Self {
            without,
            ..Self::default()
        }
    }

    pub(crate) fn has(&self, measure: Measure) -> bool {
        !self.without.contains(&measure)
    }
}
