//! Cheats that compute honestly and slow the baseline down.

use std::io::{self, Write};
use std::os::unix::process::parent_id;
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

/// How long a list of the other processes is used before it is renewed.
const NEWS: Duration = Duration::from_millis(200);

/// Repeats an action while its own process is idle, which is when the baseline is measured.
pub struct WhileIdle {
    busy: Arc<AtomicBool>,
}

impl WhileIdle {
    /// One thread per core that counts.
    pub fn burning() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from), || {
            (0..100_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        })
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

    /// One thread that stops the coordinator's other workers for most of the time: it needs no core.
    pub fn stopping_others() -> Self {
        let mut others = Vec::new();
        let mut asked = Instant::now();
        Self::new(1, move || {
            if others.is_empty() || asked.elapsed() > NEWS {
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
fn threads(process: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.map(Pid::from_raw).collect()
}

/// The other processes of the coordinator.
fn siblings() -> Vec<Pid> {
    let parent = parent_id();
    if parent == 0 {
        thwarted("its parent is outside its PID namespace, and so are the other workers");
    }
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
