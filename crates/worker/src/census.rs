//! What a worker's process group takes: processes, memory, processor time.
//!
//! Only Linux tells ([`Group::count`] reads `/proc`). Processor time is summed so that it never falls: what a child
//! took is counted while it lives, then in the times of the parent that waited for it, or here when nobody did.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::Group;
#[cfg(not(target_os = "linux"))]
pub(crate) use untold::Group;

/// What a worker with all of its process group takes at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Census {
    /// Processes alive.
    pub processes: usize,
    /// Their threads.
    pub threads: usize,
    /// Bytes of their anonymous and shared memory; files that they merely map are not counted, since the system can
    /// take those pages back. What several processes share is counted in each of them.
    pub resident_bytes: u64,
    /// Seconds of processor time taken since the start by all that is or was in the group.
    pub cpu_seconds: f64,
}

#[cfg(not(target_os = "linux"))]
mod untold {
    use nix::unistd::Pid;

    use super::Census;

    /// A process group of which the system tells nothing.
    pub(crate) struct Group;

    impl Group {
        pub fn new(_leader: Pid) -> Self {
            Self
        }

        pub fn cpu_seconds(&self) -> Option<f64> {
            None
        }

        pub fn count(&mut self) -> Option<Census> {
            None
        }

        pub fn proportional_bytes(&self) -> u64 {
            0
        }
    }
}
