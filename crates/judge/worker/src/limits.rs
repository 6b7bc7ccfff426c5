//! Limits on the resources of a worker.

use std::path::Path;
use std::{fs, thread};

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

/// The least number of bytes that a control group of this process, or one that holds it, allows; none without such a limit. Groups may be
/// nested, and in a container the outermost is only seen as `/`.
pub(crate) fn memory_limit() -> Option<u64> {
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
