//! Where the threads of a process may run, and how urgently: processor affinity, scheduling class, priorities, control
//! group, memory nodes. Read before and after a turn, it shows whether somebody moved a process meanwhile.
//!
//! The memory policy of single mappings is not read: the system walks a process's page tables to report it.

use std::collections::BTreeMap;
use std::fs;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The placement of some processes at one moment.
#[derive(Debug, Clone, Default)]
pub struct Placement {
    threads: BTreeMap<i32, Thread>,
    processes: BTreeMap<i32, Process>,
}

/// The placement of one thread.
#[derive(Debug, Clone, PartialEq)]
struct Thread {
    processors: CpuSet,
    /// In the order of [`NUMBERS`].
    numbers: [i64; NUMBERS.len()],
}

/// What decides how soon and how long a thread runs.
const NUMBERS: [&str; 6] = [
    "scheduling class",
    "nice value",
    "real-time priority",
    "lower bound of utilisation",
    "upper bound of utilisation",
    "I/O priority",
];

/// The placement that all threads of a process share, as the system words it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    control_group: String,
    memory_nodes: String,
}

/// `sched_attr` with the utilisation bounds of Linux 5.3, see sched_setattr(2).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    class: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    lower_bound: u32,
    upper_bound: u32,
}

impl Placement {
    /// The placement of these processes; threads that are just ending are left out.
    pub(crate) fn of(processes: impl IntoIterator<Item = i32>) -> Self {
        let mut placement = Self::default();
        for id in processes {
            let entries = fs::read_dir(format!("/proc/{id}/task"))
                .into_iter()
                .flatten()
                .flatten();
            let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            let read = threads.filter_map(|thread| Some((thread, Thread::read(thread)?)));
            placement.threads.extend(read);
            placement
                .processes
                .extend(Process::read(id).map(|process| (id, process)));
        }
        placement
    }

    /// The placement of this program.
    pub fn of_this_program() -> Self {
        Self::of([Pid::this().as_raw()])
    }

    /// Lets all threads of these processes run on these processors only; whether that could be done for all of them.
    pub(crate) fn restrict(processes: impl IntoIterator<Item = i32>, processors: &[usize]) -> bool {
        let mut allowed = CpuSet::new();
        if processors.iter().any(|one| allowed.set(*one).is_err()) {
            return false;
        }
        let threads = Self::of(processes).threads;
        threads
            .into_keys()
            .all(|thread| sched_setaffinity(Pid::from_raw(thread), &allowed).is_ok())
    }

    /// The processors on which this program may run.
    pub fn processors() -> Vec<usize> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
        let is_allowed = |one: &usize| allowed.is_set(*one).unwrap_or(false);
        (0..CpuSet::count()).filter(is_allowed).collect()
    }

    /// The first difference to an earlier placement, in words. Threads and processes that are not in both are ignored:
    /// the thread or process that starts another decides where that runs.
    pub fn change_since(&self, before: &Self) -> Option<String> {
        let of_threads = self.threads.iter().find_map(|(id, now)| {
            let change = now.change_since(before.threads.get(id)?)?;
            Some(format!("of thread {id} {change}"))
        });
        of_threads.or_else(|| {
            self.processes.iter().find_map(|(id, now)| {
                let change = now.change_since(before.processes.get(id)?)?;
                Some(format!("of process {id} {change}"))
            })
        })
    }
}

impl Thread {
    fn read(id: i32) -> Option<Self> {
        let mut attributes = Attributes::default();
        let size = size_of::<Attributes>();
        // SAFETY: the system writes at most `size` bytes to `attributes`, which consists of numbers.
        let read = unsafe { libc::syscall(libc::SYS_sched_getattr, id, &raw mut attributes, size, 0) };
        Errno::result(read).ok()?;
        // SAFETY: the call takes two numbers.
        let io_priority = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_THREAD, id) };
        Some(Self {
            processors: sched_getaffinity(Pid::from_raw(id)).ok()?,
            numbers: [
                attributes.class.into(),
                attributes.nice.into(),
                attributes.priority.into(),
                attributes.lower_bound.into(),
                attributes.upper_bound.into(),
                Errno::result(io_priority).ok()?,
            ],
        })
    }

    fn change_since(&self, before: &Self) -> Option<String> {
        if self.processors != before.processors {
            let [before, now] = [before, self].map(|thread| ranges(&thread.processors));
            return Some(format!("the processors changed from {before} to {now}"));
        }
        let pairs = before.numbers.iter().zip(&self.numbers).zip(NUMBERS);
        let changed = pairs.into_iter().find(|((before, now), _)| before != now);
        changed.map(|((before, now), name)| format!("the {name} changed from {before} to {now}"))
    }
}

impl Process {
    fn read(id: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let nodes = status
            .lines()
            .find_map(|line| line.strip_prefix("Mems_allowed_list:"));
        Some(Self {
            control_group: fs::read_to_string(format!("/proc/{id}/cgroup")).ok()?,
            memory_nodes: nodes.unwrap_or_default().trim().to_owned(),
        })
    }

    fn change_since(&self, before: &Self) -> Option<String> {
        let changed = |what: &str, before: &str, now: &str| {
            (before != now).then(|| format!("the {what} changed from {} to {}", before.trim(), now.trim()))
        };
        changed("control group", &before.control_group, &self.control_group)
            .or_else(|| changed("memory nodes", &before.memory_nodes, &self.memory_nodes))
    }
}

/// IOPRIO_WHO_PROCESS, for which the system takes a thread's id, see ioprio_get(2).
const WHO_THREAD: libc::c_int = 1;

/// Formats a set of processors like the system does: `0-3,8`.
fn ranges(set: &CpuSet) -> String {
    let members: Vec<usize> = (0..CpuSet::count())
        .filter(|one| set.is_set(*one).unwrap_or(false))
        .collect();
    let runs = members.chunk_by(|one, next| one + 1 == *next);
    let written = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use nix::sched::sched_setaffinity;

    use super::*;

    /// A process that waits until the test ends it.
    struct Waiting(Child);

    impl Waiting {
        fn start() -> Self {
            Self(Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn id(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_process_that_is_left_alone_does_not_change() {
        let other = Waiting::start();
        let before = Placement::of([other.id()]);
        assert_eq!((before.threads.len(), before.processes.len()), (1, 1));
        assert_eq!(Placement::of([other.id()]).change_since(&before), None);
    }

    #[test]
    fn a_pinned_process_is_named_with_its_processors() {
        let other = Waiting::start();
        let allowed = sched_getaffinity(Pid::from_raw(other.id())).unwrap();
        let members: Vec<usize> = (0..CpuSet::count())
            .filter(|one| allowed.is_set(*one).unwrap())
            .collect();
        if members.len() < 2 {
            println!("skipped, since this machine has only one processor");
            return;
        }
        let before = Placement::of([other.id()]);
        assert!(Placement::restrict([other.id()], &members[..1]));
        let change = Placement::of([other.id()]).change_since(&before).unwrap();
        let expected = format!(
            "of thread {} the processors changed from {} to {}",
            other.id(),
            ranges(&allowed),
            members[0]
        );
        assert_eq!(change, expected);
        assert!(Placement::restrict([other.id()], &members));
        assert_eq!(Placement::of([other.id()]).change_since(&before), None);
        assert!(!Placement::restrict([other.id()], &[]), "it has to run somewhere");
    }

    #[test]
    fn a_process_made_less_urgent_is_seen() {
        let other = Waiting::start();
        let before = Placement::of([other.id()]);
        // SAFETY: the call takes three numbers.
        let set = unsafe { libc::syscall(libc::SYS_setpriority, libc::PRIO_PROCESS, other.id(), 19) };
        assert_eq!(set, 0);
        let change = Placement::of([other.id()]).change_since(&before).unwrap();
        assert!(change.contains("the nice value changed from"), "{change}");
    }

    /// Another thread pins one thread of this program: the other threads stay as they were.
    #[test]
    fn a_pinned_thread_of_this_program_is_seen() {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let members: Vec<usize> = (0..CpuSet::count())
            .filter(|one| allowed.is_set(*one).unwrap())
            .collect();
        if members.len() < 2 {
            println!("skipped, since this machine has only one processor");
            return;
        }
        std::thread::spawn(move || {
            let before = Placement::of_this_program();
            let mut last = CpuSet::new();
            last.set(members[members.len() - 1]).unwrap();
            sched_setaffinity(Pid::from_raw(0), &last).unwrap();
            let change = Placement::of_this_program().change_since(&before).unwrap();
            assert!(change.contains("the processors changed from"), "{change}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn another_control_group_or_other_memory_nodes_are_told_apart() {
        let process = |group: &str, nodes: &str| Process {
            control_group: format!("0::{group}\n"),
            memory_nodes: nodes.to_owned(),
        };
        let before = process("/user", "0-1");
        assert_eq!(
            process("/user/slow", "0-1").change_since(&before).unwrap(),
            "the control group changed from 0::/user to 0::/user/slow"
        );
        assert_eq!(
            process("/user", "1").change_since(&before).unwrap(),
            "the memory nodes changed from 0-1 to 1"
        );
        assert_eq!(process("/user", "0-1").change_since(&before), None);
    }

    #[test]
    fn processors_are_written_as_ranges() {
        let mut set = CpuSet::new();
        for processor in [0, 1, 2, 8, 10, 11] {
            set.set(processor).unwrap();
        }
        assert_eq!(ranges(&set), "0-2,8,10-11");
    }
}
