//! The memory of the machine at hand.

use std::fs;
use std::path::Path;

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
    let available = system
        .available_memory()
        .min(container)
        .min(memory_limit().unwrap_or(u64::MAX));
    usize::try_from(available / 10 * 9).unwrap_or(usize::MAX)
}

/// The least number of bytes that a control group of this process, or one that holds it, allows; none without such a limit. Groups may be
/// nested, and in a container the outermost is only seen as `/`.
pub fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, Path::new("/sys/fs/cgroup"))
}

/// The same of the lines in `/proc/self/cgroup`, with the file system of control groups in this folder.
fn limit_of(groups: &str, mounted: &Path) -> Option<u64> {
    let of_line = |line: &str| -> Option<u64> {
        let mut parts = line.splitn(3, ':');
        let (controllers, group) = (parts.nth(1)?, parts.next()?);
        // Version 2 has one hierarchy, and names no controllers.
        let (root, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let inner = root.join(group.trim_start_matches('/'));
        let folders = inner.ancestors().take_while(|folder| folder.starts_with(&root));
        let limit = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
        folders.filter_map(limit).filter(|bytes| *bytes < UNLIMITED).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// Version 1 says a number near 2⁶³ where nothing is limited.
const UNLIMITED: u64 = 1 << 60;

/// How many processes the system has killed for want of memory since it started; none where it does not say. Those that a limit of a
/// control group killed are among them (Linux: `count_vm_event(OOM_KILL)` of `mm/oom_kill.c`).
pub fn memory_kills() -> Option<u64> {
    let counters = fs::read_to_string("/proc/vmstat").ok()?;
    let kills = counters.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_nested_groups_counts() {
        let mounted = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = mounted.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("a/memory.max", "1073741824\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "4294967296\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        let limit = |groups| limit_of(groups, mounted.path());
        assert_eq!(limit("0::/a/b\n"), Some(1 << 30));
        assert_eq!(limit("5:cpu,cpuacct:/c\n4:memory:/c/d\n"), Some(4 << 30));
        assert_eq!(limit("4:memory:/\n0::/\n"), None);
    }
}
