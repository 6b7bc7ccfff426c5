//! A pool of threads that lives as long as the engine.
//!
//! A launch wakes the threads once, even if it has several passes; between passes they meet at a [`Barrier`]. While a
//! thread waits, within a launch or for the next one, it spins for a short while and then sleeps in the kernel: two
//! engines in two processes that take turns on the same cores must not disturb each other's times.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::affinity::{self, Processors};
use crate::barrier::{Aborted, Barrier, Signal};
use crate::fork::PerProcess;

/// How long a thread spins before it sleeps: about the time that waking it takes.
const AWAKE: Duration = Duration::from_micros(50);

/// Persistent threads that run one job at a time; the caller is thread 0. A forked child starts threads of its own.
#[derive(Debug)]
pub(crate) struct Pool {
    threads: usize,
    processors: Option<Processors>,
    /// How long a thread spins before it sleeps.
    awake: Duration,
    crew: PerProcess<Crew>,
}

/// The threads of one process.
#[derive(Debug)]
struct Crew {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held during a launch, so that launches from several callers queue up.
    launch: Mutex<()>,
}

#[derive(Debug)]
struct Shared {
    /// Raised once per launch, and when the pool closes.
    start: Signal,
    /// The current job; dangling between launches.
    job: AtomicPtr<Job<'static>>,
    barrier: Barrier,
    /// Workers that have not finished the job.
    running: AtomicU32,
    done: Signal,
    panic: Mutex<Option<Panic>>,
    closing: AtomicBool,
    /// The processor from which the latest job was launched, if known.
    caller: AtomicUsize,
}

/// Stands for an unknown processor.
const NOWHERE: usize = usize::MAX;

struct Panic(Box<dyn Any + Send>);

impl std::fmt::Debug for Panic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Panic")
    }
}

/// The function that each thread runs; it gets the thread's number and the barrier.
struct Job<'a>(&'a (dyn Fn(usize, &Barrier) -> Result<(), Aborted> + Sync));

impl Pool {
    /// Starts `threads − 1` threads; the caller of [`run`](Self::run) is the remaining one. Pins each to its processor
    /// if `processors` is given.
    pub fn new(threads: usize, processors: Option<&Processors>) -> std::io::Result<Self> {
        // With more threads than processors, a spinning thread can keep the thread that it waits for from running.
        let crowded = std::thread::available_parallelism().is_ok_and(|there| usize::from(there) < threads);
        Self::awake_for(threads, processors, if crowded { Duration::ZERO } else { AWAKE })
    }

    fn awake_for(threads: usize, processors: Option<&Processors>, awake: Duration) -> std::io::Result<Self> {
        let pool = Self {
            threads,
            processors: processors.cloned(),
            awake,
            crew: PerProcess::new(),
        };
        pool.start()?;
        Ok(pool)
    }

    /// Starts the threads, unless they run already.
    pub fn start(&self) -> std::io::Result<()> {
        self.crew().map(drop)
    }

    fn crew(&self) -> std::io::Result<&Crew> {
        self.crew
            .get(|| Crew::new(self.threads, self.processors.as_ref(), self.awake))
    }

    /// Threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `job` once on each thread, with the thread's number, and returns when all are done. If a thread panics, the
    /// panic is raised again here.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        self.run_in_passes(&|thread, _| {
            job(thread);
            Ok(())
        });
    }

    /// Like [`run`](Self::run), for a job of several passes: between passes each thread waits at the given barrier, and
    /// returns if the barrier is aborted.
    ///
    /// # Panics
    /// If the threads of a forked child cannot be started; [`start`](Self::start) returns that as an error.
    #[expect(
        clippy::panic,
        reason = "it is documented, and `start` comes before on all paths of a caller"
    )]
    pub fn run_in_passes(&self, job: &(dyn Fn(usize, &Barrier) -> Result<(), Aborted> + Sync)) {
        match self.crew() {
            Ok(crew) => crew.run(job),
            Err(error) => panic!("cannot start {} threads after a fork: {error}", self.threads),
        }
    }

    /// Makes the threads sleep now instead of spinning for the next launch; that launch has to wake them.
    pub fn rest(&self) {
        self.run_in_passes(&|_, barrier| {
            barrier.sleep_at_once();
            Ok(())
        });
    }
}

impl Crew {
    /// Starts `threads − 1` threads.
    fn new(threads: usize, processors: Option<&Processors>, awake: Duration) -> std::io::Result<Self> {
        let count = u32::try_from(threads).map_err(std::io::Error::other)?;
        let shared = Arc::new(Shared {
            start: Signal::default(),
            job: AtomicPtr::default(),
            barrier: Barrier::new(count, awake),
            running: AtomicU32::new(0),
            done: Signal::default(),
            panic: Mutex::new(None),
            closing: AtomicBool::new(false),
            caller: AtomicUsize::new(NOWHERE),
        });
        let mut crew = Self {
            shared,
            workers: Vec::new(),
            launch: Mutex::new(()),
        };
        for thread in 1..threads {
            let shared = Arc::clone(&crew.shared);
            let processors = processors.cloned();
            let work = move || {
                if let Some(processors) = processors {
                    // Pinning is an optimisation: an unpinned thread computes the same results.
                    let _ = processors.pin(thread);
                }
                shared.serve(thread);
            };
            let worker = std::thread::Builder::new()
                .name(format!("gauntlet-cpu-{thread}"))
                .spawn(work)?;
            crew.workers.push(worker);
        }
        Ok(crew)
    }

    fn run(&self, job: &(dyn Fn(usize, &Barrier) -> Result<(), Aborted> + Sync)) {
        let _launch = lock(&self.launch);
        let shared = &*self.shared;
        let job = Job(job);
        // The cast changes only the lifetime; `serve` explains why that is sound.
        let erased = std::ptr::from_ref(&job).cast_mut().cast::<Job<'static>>();
        let done = shared.done.count();
        shared.barrier.reset();
        shared.job.store(erased, Ordering::Relaxed);
        if !self.workers.is_empty() {
            let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
            shared.running.store(workers, Ordering::Relaxed);
            let caller = affinity::here().unwrap_or(NOWHERE);
            shared.caller.store(caller, Ordering::Relaxed);
            shared.start.raise();
        }
        shared.work(&job, 0);
        if !self.workers.is_empty() {
            shared.done.wait(done, shared.barrier.awake());
        }
        let panic = lock(&shared.panic).take();
        if let Some(Panic(payload)) = panic {
            resume_unwind(payload);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.start.raise();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its jobs, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The main loop of a worker.
    fn serve(&self, thread: usize) {
        let mut launches = 0;
        loop {
            self.start.wait(launches, self.barrier.awake());
            launches = launches.wrapping_add(1);
            if self.closing.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: the pointer was stored before the launch was raised. `Crew::run` keeps the job alive
            // until this thread has decremented `running` below: it cannot unwind earlier, because panics of its own
            // share are caught too. The closure is `Sync`.
            let job = unsafe { &*self.job.load(Ordering::Relaxed) };
            // The system may wake a thread on its caller's processor and leave it there although others are idle. If it
            // spun there, it would keep the caller, for which it waits, from running.
            if affinity::here() == Some(self.caller.load(Ordering::Relaxed)) {
                self.barrier.sleep_at_once();
            }
            self.work(job, thread);
            if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.done.raise();
            }
        }
    }

    /// One thread's share of a job. If it panics, the others stop at their next barrier.
    fn work(&self, job: &Job<'_>, thread: usize) {
        // A share that ended with `Aborted` counts as done.
        let outcome = catch_unwind(AssertUnwindSafe(|| (job.0)(thread, &self.barrier)));
        if let Err(payload) = outcome {
            lock(&self.panic).get_or_insert(Panic(payload));
            self.barrier.abort();
        }
    }
}

/// Locks, even if a thread panicked while it held the lock: the data behind the locks of this crate are either
/// overwritten by the next run or plain counters.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, ignoring poisoning as [`lock`] does.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use nix::time::{ClockId, clock_gettime};

    use super::*;

    /// Launches per test; Miri is slow.
    const LAUNCHES: usize = if cfg!(miri) { 12 } else { 2000 };

    #[test]
    fn every_thread_runs_every_launch_once() {
        let pool = Pool::new(5, None).unwrap();
        let counts: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
        for launch in 1..=LAUNCHES {
            pool.run(&|thread| {
                counts[thread].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == launch));
        }
    }

    #[test]
    fn launches_from_several_callers_do_not_mix() {
        let pool = Pool::new(3, None).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..LAUNCHES.min(200) {
                        let sum = AtomicUsize::new(0);
                        pool.run(&|thread| {
                            sum.fetch_add(thread + 1, Ordering::Relaxed);
                        });
                        assert_eq!(sum.into_inner(), 1 + 2 + 3);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Pool::new(3, None).unwrap();
        for panicking in 0..3 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(&|thread| assert_ne!(thread, panicking, "thread {thread}"));
            }));
            assert!(outcome.is_err());
        }
        let runs = AtomicUsize::new(0);
        pool.run(&|_| {
            runs.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(runs.into_inner(), 3);
    }

    #[test]
    fn passes_see_what_all_threads_did_before() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads, None).unwrap();
            let sum = AtomicUsize::new(0);
            for launch in 0..LAUNCHES.min(50) {
                pool.run_in_passes(&|_, barrier| {
                    for pass in 1..=20 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        barrier.wait()?;
                        assert_eq!(sum.load(Ordering::Relaxed), (launch * 20 + pass) * threads);
                        barrier.wait()?;
                    }
                    Ok(())
                });
            }
        }
    }

    #[test]
    fn a_panic_in_any_pass_ends_the_launch() {
        let pool = Pool::new(3, None).unwrap();
        for round in 0..LAUNCHES.min(60) {
            let (panicking, last) = (round % 3, round / 3 % 4);
            let begun = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run_in_passes(&|thread, barrier| {
                    for pass in 0..4 {
                        begun.fetch_max(pass, Ordering::Relaxed);
                        assert!(
                            thread != panicking || pass != last,
                            "thread {thread}, pass {pass}"
                        );
                        barrier.wait()?;
                    }
                    Ok(())
                });
            }));
            let message = outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!(*message, format!("thread {panicking}, pass {last}"));
            assert_eq!(begun.into_inner(), last);
            pool.run_in_passes(&|_, barrier| barrier.wait());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "measures time")]
    fn threads_sleep_between_launches() {
        let pool = Pool::new(2, None).unwrap();
        let used = Mutex::new(Vec::new());
        for _ in 0..2 {
            pool.run(&|thread| {
                if thread == 1 {
                    lock(&used).push(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
                }
            });
            std::thread::sleep(Duration::from_millis(200));
        }
        let used = used.into_inner().unwrap();
        assert!(Duration::from(used[1] - used[0]) < Duration::from_millis(20));
    }

    #[test]
    fn threads_told_to_rest_do_not_stay_awake() {
        let pool = Pool::awake_for(3, None, Duration::from_hours(1)).unwrap();
        for _ in 0..3 {
            pool.run(&|_| {});
            pool.rest();
            while pool.crew().unwrap().shared.start.sleepers() < 2 {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn pools_come_and_go() {
        for threads in 1..=8 {
            let pool = Pool::new(threads, None).unwrap();
            assert_eq!(pool.threads(), threads);
        }
    }
}
