//! Resources used by a worker's process group: processes, memory, processor time.
//!
//! Available only on Linux ([`Group::count`] reads `/proc`). The sum of processor time never decreases: a child's time
//! is counted while it lives, and afterwards either in the times of the parent that waited for it, or here if no
//! process waited. A process that no process waits for, and that ends between two counts, is known only where the system has
//! counters that processes inherit.

#[cfg(target_os = "linux")]
mod counter;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::Group;
#[cfg(not(target_os = "linux"))]
pub(crate) use untold::Group;

/// The resources that a worker's process group uses at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Census {
    /// Processes alive.
    pub processes: usize,
    /// Threads of all these processes.
    pub threads: usize,
    /// Bytes of anonymous and shared memory; mapped files are not counted, since the system can reclaim those pages.
    /// Memory that several processes share is counted in each of them.
    pub resident_bytes: u64,
    /// Seconds of processor time since the start, of all processes that are or were in the group.
    pub cpu_seconds: f64,
}

#[cfg(not(target_os = "linux"))]
mod untold {
    use nix::unistd::Pid;

    use super::Census;

    /// A process group on a system that reports nothing about it.
    pub(crate) struct Group;

    impl Group {
        pub fn new(_leader: Pid, _init: Option<Pid>) -> Self {
            Self
        }

        pub fn cpu_seconds(&self) -> Option<f64> {
            None
        }

        pub fn waited_seconds(&self) -> Option<f64> {
            None
        }

        pub fn first_thread_waited_seconds(&self) -> Option<f64> {
            None
        }

        pub fn count(&mut self) -> Option<Census> {
            None
        }

        pub fn count_if_changed(&mut self) -> Option<()> {
            None
        }

        pub fn seconds_if_stopped(&self) -> Option<f64> {
            None
        }

        pub fn members(&self) -> impl Iterator<Item = i32> {
            std::iter::empty()
        }

        pub fn proportional_bytes(&self) -> u64 {
            0
        }
    }
}
