//! Cheats that compute honestly and slow the baseline down.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::processes;
use super::thefts::thwarted;
use super::work::{Trick, Work};

/// The longest disturbance, so that none outlives a trial by much.
const LONGEST: Duration = Duration::from_secs(20);

/// How long the other processes are stopped at a time: a shorter stop would affect few calls.
const STOPPED: Duration = Duration::from_millis(2);

/// How long a burst of work lasts that shares a processor with the baseline.
const BURST: Duration = Duration::from_micros(400);

/// How long a list of the other processes is used before it is renewed.
const NEWS: Duration = Duration::from_millis(200);

/// Repeats an action while its own process is idle, which is when the baseline is measured.
pub struct WhileIdle {
    busy: Arc<AtomicBool>,
}

impl WhileIdle {
    /// One thread per core that counts.
    pub fn burning() -> Self {
        Self::new(cores(), count)
    }

    /// One thread that goes through more memory than a cache holds.
    pub fn streaming() -> Self {
        let mut memory = vec![1_u8; 64 << 20];
        Self::new(1, move || {
            for chunk in memory.chunks_mut(1 << 20) {
                chunk.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            }
            std::hint::black_box(&memory);
        })
    }

    /// One thread that writes files of some megabytes through to the disk, one after another.
    pub fn writing() -> Self {
        let content = vec![b'!'; 4 << 20];
        Self::new(1, move || {
            let place = "written-when-idle";
            let written = File::create(place).and_then(|mut file| {
                file.write_all(&content)?;
                file.sync_all()
            });
            // A disk that refuses ends the disturbance, not the worker.
            if written.is_err() {
                thread::sleep(STOPPED);
            }
            let _removed = std::fs::remove_file(place);
        })
    }

    /// One thread that takes memory, touches it, and gives it back.
    pub fn taking_memory() -> Self {
        Self::new(1, || {
            let mut memory = vec![0_u8; 128 << 20];
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            std::hint::black_box(&memory);
        })
    }

    /// One thread per core that wakes thousands of times a second and does next to nothing each time.
    pub fn waking() -> Self {
        Self::new(cores(), || thread::sleep(Duration::from_micros(20)))
    }

    /// One thread that counts for a quarter of the time, a fraction of a millisecond at a time.
    pub fn burning_in_bursts() -> Self {
        Self::new(1, || {
            let start = Instant::now();
            while start.elapsed() < BURST {
                std::hint::spin_loop();
            }
            thread::sleep(BURST * 3);
        })
    }

    /// One thread per core that counts at the lowest priority, so that it looks harmless.
    pub fn burning_politely() -> Self {
        let mut polite = false;
        Self::new(cores(), move || {
            if !std::mem::replace(&mut polite, true) {
                lower_own_priority();
            }
            count();
        })
    }

    /// One thread that stops the coordinator's other workers for most of the time: it needs no core.
    pub fn stopping_others() -> Self {
        let mut others = Vec::new();
        let mut asked = Instant::now();
        Self::new(1, move || {
            if others.is_empty() || asked.elapsed() > NEWS {
                if !coordinator_is_visible() {
                    thwarted(UNSEEN);
                }
                (others, asked) = (siblings(), Instant::now());
            }
            let send = |signal| {
                for other in &others {
                    if let Err(error) = kill(*other, signal) {
                        processes::unless_gone(*other, error);
                    }
                }
            };
            send(Signal::SIGSTOP);
            thread::sleep(STOPPED);
            send(Signal::SIGCONT);
            thread::sleep(STOPPED / 4);
        })
    }

    /// One thread that pins all threads of the coordinator's other workers to one processor: nothing needs to run
    /// while they are measured.
    pub fn pinning_others() -> Self {
        let mut first = CpuSet::new();
        let _first_is_known = first.set(0);
        Self::new(1, move || {
            if !coordinator_is_visible() {
                thwarted(UNSEEN);
            }
            for other in siblings() {
                for thread in threads(other) {
                    match sched_setaffinity(thread, &first) {
                        Ok(()) | Err(Errno::ESRCH) => {}
                        Err(error) => thwarted(&format!("thread {thread} cannot be pinned: {error}")),
                    }
                }
            }
            thread::sleep(NEWS);
        })
    }

    fn new(threads: usize, deed: impl FnMut() + Clone + Send + 'static) -> Self {
        let busy = Arc::new(AtomicBool::new(true));
        let end = Instant::now() + LONGEST;
        for _ in 0..threads {
            let (busy, mut deed) = (Arc::clone(&busy), deed.clone());
            thread::spawn(move || {
                while Instant::now() < end {
                    if busy.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_micros(100));
                    } else {
                        deed();
                    }
                }
            });
        }
        Self { busy }
    }
}

impl Trick for WhileIdle {
    fn asked(&mut self, _work: &mut Work) {
        self.busy.store(true, Ordering::Relaxed);
    }

    fn served(&mut self) {
        self.busy.store(false, Ordering::Relaxed);
    }
}

/// The threads of a process.
pub fn threads(process: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.map(Pid::from_raw).collect()
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn count() {
    (0..100_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
}

fn lower_own_priority() {
    const LOWEST: nix::libc::c_int = 19;
    // SAFETY: the call takes numbers only and touches no memory of this process. 0 means the calling thread.
    let _lowered = unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, LOWEST) };
}

/// The message of a cheat that looks for its rival in a PID namespace of its own.
pub const UNSEEN: &str = "no other process can be seen";

/// Whether the coordinator's entry among the processes can be seen; if not, its other workers' cannot be either.
pub fn coordinator_is_visible() -> bool {
    Path::new(&format!("/proc/{}/task", parent_id())).exists()
}

/// The other processes of the coordinator.
pub fn siblings() -> Vec<Pid> {
    let parent = parent_id();
    let children = format!("/proc/{parent}/task");
    let tasks = std::fs::read_dir(children).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let own = std::process::id();
    listed
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<u32>>()
        })
        .filter(|id| *id != own)
        .filter_map(|id| i32::try_from(id).ok().map(Pid::from_raw))
        .collect()
}

/// Bytes of a flood: more than any honest worker prints.
const FLOOD: usize = 256 << 20;

/// Floods standard error.
pub fn flood_stderr() -> io::Result<()> {
    let piece = [b'!'; 1 << 16];
    (0..FLOOD / piece.len()).try_for_each(|_| io::stderr().write_all(&piece))
}
