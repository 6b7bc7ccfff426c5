//! A pool of threads that lives as long as the engine.
//!
//! Idle threads block in the kernel and never spin: two engines in two processes that take turns on the same cores
//! must not disturb each other's times.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::affinity::Processors;

/// Persistent threads that run one job at a time, the caller being thread 0.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held for the length of a launch: launches from several callers queue up.
    launch: Mutex<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    start: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Counts launches, so that a worker runs each of them once.
    launches: u64,
    job: Option<Job>,
    running: usize,
    panic: Option<Panic>,
    closing: bool,
}

struct Panic(Box<dyn Any + Send>);

impl std::fmt::Debug for Panic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Panic")
    }
}

/// A borrowed closure whose lifetime has been forgotten.
#[derive(Debug, Clone, Copy)]
struct Job(*const (dyn Fn(usize) + Sync));

// SAFETY: the closure is `Sync`, so a reference to it may be used by any thread; `Pool::run` keeps it alive.
unsafe impl Send for Job {}

impl Pool {
    /// Starts `threads − 1` threads; the caller of [`run`](Self::run) is the remaining one. Each stays on its processor
    /// if there are some to stay on.
    pub fn new(threads: usize, processors: Option<&Processors>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            start: Condvar::new(),
            done: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            workers: Vec::new(),
            launch: Mutex::new(()),
        };
        for thread in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let processors = processors.cloned();
            let work = move || {
                if let Some(processors) = processors {
                    // A thread that is moved about is slower, not wrong.
                    let _ = processors.pin(thread);
                }
                serve(&shared, thread);
            };
            let worker = std::thread::Builder::new()
                .name(format!("gauntlet-cpu-{thread}"))
                .spawn(work)?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job` once on each thread, giving it the thread's number, and returns when all are done. A panic of any
    /// thread is raised again here.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        let _launch = lock(&self.launch);
        // SAFETY: only the lifetime changes. No worker touches the job after it has counted itself out of
        // `running`, and this function does not return, nor unwind, before `running` is zero.
        let erased = Job(unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync + 'static)>(job)
        });
        {
            let mut state = lock(&self.shared.state);
            state.launches += 1;
            state.job = Some(erased);
            state.running = self.workers.len();
        }
        self.shared.start.notify_all();
        let own = catch_unwind(AssertUnwindSafe(|| job(0)));
        let mut state = lock(&self.shared.state);
        while state.running > 0 {
            state = wait(&self.shared.done, state);
        }
        state.job = None;
        let panic = state.panic.take();
        drop(state);
        if let Err(payload) = own {
            resume_unwind(payload);
        }
        if let Some(Panic(payload)) = panic {
            resume_unwind(payload);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).closing = true;
        self.shared.start.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its jobs, so joining cannot fail.
            let _ = worker.join();
        }
    }
}

fn serve(shared: &Shared, thread: usize) {
    let mut seen = 0;
    loop {
        let job = {
            let mut state = lock(&shared.state);
            loop {
                if state.closing {
                    return;
                }
                match state.job {
                    Some(job) if state.launches != seen => {
                        seen = state.launches;
                        break job;
                    }
                    _ => state = wait(&shared.start, state),
                }
            }
        };
        // SAFETY: `Pool::run` keeps the closure alive until this thread has counted itself out below.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.0)(thread) }));
        let mut state = lock(&shared.state);
        if let Err(payload) = outcome {
            state.panic = Some(Panic(payload));
        }
        state.running -= 1;
        if state.running == 0 {
            shared.done.notify_one();
        }
    }
}

/// Locks, whether or not a thread panicked while holding the lock: what the locks of this crate guard is either
/// overwritten by the next run or a plain counter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits as [`lock`] locks.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_thread_runs_every_launch_once() {
        let pool = Pool::new(5, None).unwrap();
        let counts: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
        for launch in 1..=2000 {
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
                    for _ in 0..200 {
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
    fn pools_come_and_go() {
        for threads in 1..=8 {
            let pool = Pool::new(threads, None).unwrap();
            assert_eq!(pool.threads(), threads);
        }
    }
}
