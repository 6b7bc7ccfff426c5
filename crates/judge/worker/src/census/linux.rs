//! The census from `/proc` and the processes' own clocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::Census;
use super::counter::Counter;

/// A worker's process group and the resources that its members used at the last count.
pub(crate) struct Group {
    leader: Pid,
    /// Process 1 of the worker's namespace, which waits for orphans. It is not one of the worker's processes.
    init: Option<Pid>,
    members: BTreeMap<i32, Taken>,
    /// The numbers of all processes of the worker's namespace, in that namespace, just before the last count.
    inside: Option<BTreeSet<i32>>,
    /// Counts also those that come and go between two counts; none where the system does not offer it.
    counter: Option<Counter>,
    /// Seconds used by members that are gone and that are not included in their parents' times.
    gone: f64,
}

/// Seconds of processor time of one process.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    own: f64,
    /// Seconds of its children that ended and were waited for.
    children: f64,
}

impl Taken {
    fn sum(self) -> f64 {
        self.own + self.children
    }
}

impl Group {
    pub fn new(leader: Pid, init: Option<Pid>) -> Self {
        let known = std::iter::once(leader).chain(init);
        Self {
            leader,
            init,
            members: known.map(|known| (known.as_raw(), Taken::default())).collect(),
            inside: None,
            counter: Counter::of(leader).ok(),
            gone: 0.0,
        }
    }

    /// Seconds of processor time of all members known from the last count, to the nanosecond; takes two system calls
    /// per member. Members that came later are missing until the next count, except where the system has a counter.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let living = self.members.iter().map(|(id, taken)| {
            if self.is_init(*id) {
                return taken.sum();
            }
            // If a member is gone, its last known time counts.
            clock(Pid::from_raw(*id)).unwrap_or(0.0).max(taken.own) + taken.children
        });
        Some(self.at_least_counted(living.sum::<f64>() + self.gone))
    }

    /// The sum of what is known of each member, or the counter's if that is more.
    fn at_least_counted(&self, sum: f64) -> f64 {
        let counted = self.counter.as_ref().and_then(Counter::seconds);
        counted.map_or(sum, |counted| counted.max(sum))
    }

    /// Seconds that the living threads of the members last counted have waited for a processor while they were ready to
    /// run, by the scheduler's statistics. `None` if the system keeps none.
    pub fn waited_seconds(&self) -> Option<f64> {
        let threads = |id| {
            let threads = fs::read_dir(format!("/proc/{id}/task"));
            threads.into_iter().flatten().flatten()
        };
        let threads = self.members().flat_map(threads);
        let each = threads.filter_map(|thread| waited(&thread.path().join("schedstat")));
        each.fold(None, |sum, seconds| Some(sum.unwrap_or(0.0) + seconds))
    }

    /// The same of the leader's first thread alone.
    pub fn first_thread_waited_seconds(&self) -> Option<f64> {
        waited(Path::new(&format!("/proc/{}/schedstat", self.leader)))
    }

    /// Counts the members and their resources by reading the state of every process of the system.
    pub fn count(&mut self) -> Option<Census> {
        let tick = 1.0 / sysconf(SysconfVar::CLK_TCK).ok()?? as f64;
        let mut processes = 0;
        let mut threads = 0;
        let mut resident_bytes = 0;
        let mut members = BTreeMap::new();
        let inside = self.processes_inside();
        let mut ids: Vec<i32> = processes_of("/proc")?.collect();
        // The youngest first: they have had the least time to run unnoticed.
        ids.sort_unstable_by_key(|id| Reverse(*id));
        for id in ids {
            let is_member = |state: &State| state.group == self.leader.as_raw() || self.is_init(id);
            let Some(state) = State::read(id).filter(is_member) else {
                continue;
            };
            if self.is_init(id) {
                let children = state.children_ticks as f64 * tick;
                members.insert(id, Taken { own: 0.0, children });
                continue;
            }
            let taken = Taken {
                own: clock(Pid::from_raw(id)).unwrap_or(state.own_ticks as f64 * tick),
                children: state.children_ticks as f64 * tick,
            };
            if state.is_dead {
                let parent = Pid::from_raw(state.parent);
                if id != self.leader.as_raw() && parent == Pid::this() {
                    // Its parent left it behind, so it was adopted by this program, which must reap it.
                    let _reaped = waitpid(Pid::from_raw(id), Some(WaitPidFlag::WNOHANG));
                    self.members.remove(&id);
                    self.gone += taken.sum();
                    continue;
                }
            } else {
                processes += 1;
                threads += state.threads;
                resident_bytes += resident(id);
            }
            members.insert(id, taken);
        }
        self.gone += self.unaccounted(&members, 2.0 * tick);
        self.members = members;
        self.inside = inside;
        Some(Census {
            processes,
            threads,
            resident_bytes,
            cpu_seconds: self
                .at_least_counted(self.members.values().map(|taken| taken.sum()).sum::<f64>() + self.gone),
        })
    }

    /// Counts the members if processes have come or gone since the last count. The list of the worker's namespace tells
    /// within some ten microseconds; without a namespace only a count does, which takes up to milliseconds.
    pub fn count_if_changed(&mut self) -> Option<()> {
        let inside = self.processes_inside();
        if inside.is_none() || inside != self.inside {
            self.count()?;
        }
        Some(())
    }

    /// Seconds of processor time that the members have used; none if any of their threads can run.
    pub fn seconds_if_stopped(&self) -> Option<f64> {
        self.members().all(is_stopped).then(|| self.cpu_seconds())?
    }

    fn processes_inside(&self) -> Option<BTreeSet<i32>> {
        Some(processes_of(&format!("/proc/{}/root/proc", self.init?))?.collect())
    }

    /// The processes last counted.
    pub fn members(&self) -> impl Iterator<Item = i32> {
        self.members.keys().copied().filter(|id| !self.is_init(*id))
    }

    fn is_init(&self, id: i32) -> bool {
        self.init == Some(Pid::from_raw(id))
    }

    /// Bytes of anonymous and shared memory of the members last counted; memory that several members share is counted
    /// once.
    pub fn proportional_bytes(&self) -> u64 {
        self.members()
            .map(|id| {
                let whole = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
                let exact = kibibytes(&whole, "Pss_Anon:").zip(kibibytes(&whole, "Pss_Shmem:"));
                exact.map_or_else(|| resident(id), |(anonymous, shared)| 1024 * (anonymous + shared))
            })
            .sum()
    }

    /// Seconds of members that vanished since the last count, minus the seconds added to the times of parents that
    /// waited for children; differences up to `grain` count as zero, since times are rounded to clock ticks.
    fn unaccounted(&self, now: &BTreeMap<i32, Taken>, grain: f64) -> f64 {
        let mut vanished = 0.0;
        let mut inherited = 0.0;
        for (id, before) in &self.members {
            match now.get(id) {
                Some(taken) => inherited += taken.children - before.children,
                None => vanished += before.sum(),
            }
        }
        let rest: f64 = vanished - inherited;
        if rest > grain { rest } else { 0.0 }
    }
}

/// Seconds that a thread has waited for a processor, from its file `schedstat`: the nanoseconds on a processor, those waiting
/// for one, and how often it got one.
fn waited(schedstat: &Path) -> Option<f64> {
    let statistics = fs::read_to_string(schedstat).ok()?;
    let nanoseconds: u64 = statistics.split_whitespace().nth(1)?.parse().ok()?;
    Some(1e-9 * nanoseconds as f64)
}

/// Seconds of processor time of a process including all of its threads.
fn clock(process: Pid) -> Option<f64> {
    let time = clock_gettime(ClockId::pid_cpu_clock_id(process).ok()?).ok()?;
    Some(time.tv_sec() as f64 + 1e-9 * time.tv_nsec() as f64)
}

/// Whether no thread of a process can run: each is stopped and has left its processor, or is dead.
fn is_stopped(process: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten().all(|thread| {
        let line = fs::read(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name, which is in parentheses; a thread that has just ended has none.
        let end = line.iter().rposition(|byte| *byte == b')');
        let state = end.and_then(|end| line.get(end + 2));
        // A thread gets this state a moment before it leaves its processor, and may be interrupted in between. The system
        // says what call it is in only when it has left, and until then that it is running.
        let has_left = || {
            let call = fs::read(thread.path().join("syscall")).ok();
            call.is_none_or(|call| !call.starts_with(b"running"))
        };
        state.is_none_or(|state| b"ZX".contains(state) || b"tT".contains(state) && has_left())
    })
}

/// The processes that a folder lists as `/proc` does.
fn processes_of(folder: &str) -> Option<impl Iterator<Item = i32>> {
    let entries = fs::read_dir(folder).ok()?;
    Some(
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok()),
    )
}

/// The fields used of `/proc/<id>/stat`; see proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct State {
    is_dead: bool,
    parent: i32,
    group: i32,
    own_ticks: u64,
    children_ticks: u64,
    threads: usize,
}

impl State {
    fn read(id: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{id}/stat")).ok()?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The process chooses its name, which is in parentheses: the name may hold blanks, parentheses and any bytes.
        let end = line.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&line[end + 1..])
            .ok()?
            .split_ascii_whitespace()
            .collect();
        // Index 0 is the third field of the manual, the state.
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            own_ticks: number(11)? + number(12)?,
            children_ticks: number(13)? + number(14)?,
            threads: usize::try_from(number(17)?).ok()?,
        })
    }
}

/// Bytes of anonymous and shared memory of a process; 0 if it is gone.
fn resident(id: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let named = |name| kibibytes(&status, name).unwrap_or(0);
    1024 * (named("RssAnon:") + named("RssShmem:"))
}

/// The value of a `Name: … kB` line in `/proc/<id>/status` and similar files.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_its_own_choice_does_not_mislead() {
        let line = b"7 (a) Z 1 (b\xff) S 3 42 42 0 -1 4194304 1 0 0 0 5 6 70 80 20 0 9 0 100 1 1";
        let state = State::parse(line).unwrap();
        assert_eq!(
            state,
            State {
                is_dead: false,
                parent: 3,
                group: 42,
                own_ticks: 11,
                children_ticks: 150,
                threads: 9,
            }
        );
    }

    #[test]
    fn waiting_is_known_where_the_scheduler_counts_it() {
        let own = Group::new(Pid::this(), None);
        let first = own.waited_seconds();
        let counts = fs::read_to_string("/proc/self/schedstat").is_ok();
        assert_eq!(first.is_some(), counts);
        assert!(first.is_none_or(|seconds| seconds >= 0.0 && seconds.is_finite()));
        let of_one = own.first_thread_waited_seconds();
        assert_eq!(of_one.is_some(), counts);
        let both = of_one.zip(own.waited_seconds());
        assert!(both.is_none_or(|(one, all)| one <= all), "{both:?}");
        let nobody = Group {
            leader: Pid::from_raw(1),
            init: None,
            members: BTreeMap::new(),
            inside: None,
            counter: None,
            gone: 0.0,
        };
        assert_eq!(nobody.waited_seconds(), None);
    }

    #[test]
    fn time_of_those_that_vanish_is_counted_once() {
        let taken = |own, children| Taken { own, children };
        let before = BTreeMap::from([(1, taken(1.0, 0.0)), (2, taken(3.0, 0.0))]);
        let group = Group {
            leader: Pid::from_raw(1),
            init: None,
            members: before,
            inside: None,
            counter: None,
            gone: 0.0,
        };
        // The child was waited for: its time is now in its parent's.
        assert_eq!(
            group.unaccounted(&BTreeMap::from([(1, taken(1.0, 3.5))]), 0.02),
            0.0
        );
        // The child was not waited for.
        assert_eq!(
            group.unaccounted(&BTreeMap::from([(1, taken(1.0, 0.0))]), 0.02),
            3.0
        );
    }

    #[test]
    fn this_process_is_seen_with_its_time_and_memory() {
        let own = State::read(Pid::this().as_raw()).unwrap();
        assert!(!own.is_dead && own.threads >= 1);
        assert!(resident(Pid::this().as_raw()) > 100 << 10);
        let before = clock(Pid::this()).unwrap();
        let mut sum = 0_u64;
        while clock(Pid::this()).unwrap() < before + 0.02 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(State::read(i32::MAX), None);
    }
}
