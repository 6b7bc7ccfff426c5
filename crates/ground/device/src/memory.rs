//! The memory of the machine at hand.

use sysinfo::{MemoryRefreshKind, System};

/// Bytes of memory that this process can still fill safely: nine tenths of the free memory of the machine, or of the
/// container if it has less. `usize::MAX` if the system does not report its memory.
///
/// Operating systems overcommit: an allocation beyond this limit may succeed, and the process is killed when it fills the
/// memory.
pub fn available_bytes() -> usize {
    if cfg!(miri) {
        // Miri cannot ask the operating system.
        return usize::MAX;
    }
    let Ok(mut system) = System::new() else {
        return usize::MAX;
    };
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    // A container's usage includes its page cache, which the system frees on demand, so only resident memory is
    // subtracted.
    let container = system
        .cgroup_limits()
        .map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss));
    let available = system.available_memory().min(container);
    usize::try_from(available / 10 * 9).unwrap_or(usize::MAX)
}
