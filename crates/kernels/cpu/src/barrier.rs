//! Synchronisation between threads: spin for a short while, then sleep.
//!
//! The threads of a call meet every few tens of microseconds, and being woken by the kernel takes about as long. So a
//! waiting thread spins for about as long as waking it would take, which costs at most twice the better of the two
//! choices, and then sleeps: another program, or the thread that it waits for, may need its processor.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::futex;

/// Checks of the flag between two reads of the clock.
const LOOKS: u32 = 32;

/// A counter that threads wait on. It has two cache lines to itself (processors fetch lines in pairs), so that writes
/// to neighbouring data do not disturb the threads that poll it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Signal {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Signal {
    /// How often it has been raised.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// The number of threads that sleep until it is raised.
    #[cfg(test)]
    pub fn sleepers(&self) -> u32 {
        self.sleepers.load(Ordering::SeqCst)
    }

    /// Wakes all waiting threads.
    pub fn raise(&self) {
        // With the orderings in `wait`: either the sleeper sees the new count, or this thread sees the sleeper.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&raw const self.count);
        }
    }

    /// Waits until the count differs from `seen`; spins for up to `awake`, then sleeps.
    pub fn wait(&self, seen: u32, awake: Duration) {
        if self.look(seen, awake) {
            return;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.count.load(Ordering::SeqCst) == seen {
            futex::wait(&self.count, seen);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Spins for up to `awake`; whether the count changed meanwhile.
    fn look(&self, seen: u32, awake: Duration) -> bool {
        if awake.is_zero() {
            return self.count() != seen;
        }
        let start = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if self.count() != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > awake {
                return false;
            }
        }
    }
}

/// A thread of the team panicked. The other threads should return, since they may wait for an event that never comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted;

/// The meeting point of a team's threads.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: u32,
    awake: Duration,
    arrived: AtomicU32,
    crossings: AtomicU32,
    aborted: AtomicBool,
    /// Whether waiters sleep immediately instead of spinning.
    drowsy: AtomicBool,
    /// Raised on every event that a thread may wait for.
    news: Signal,
}

impl Barrier {
    /// A barrier for `threads` threads, which spin for up to `awake`.
    pub fn new(threads: u32, awake: Duration) -> Self {
        Self {
            threads,
            awake,
            arrived: AtomicU32::new(0),
            crossings: AtomicU32::new(0),
            aborted: AtomicBool::new(false),
            drowsy: AtomicBool::new(false),
            news: Signal::default(),
        }
    }

    /// Waits until all threads are here. Writes made before are visible to all threads afterwards.
    pub fn wait(&self) -> Result<(), Aborted> {
        let crossings = self.crossings.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // No thread can arrive again before the barrier opens.
            self.arrived.store(0, Ordering::Relaxed);
            self.crossings.fetch_add(1, Ordering::Release);
            self.news.raise();
        }
        self.wait_until(|| self.crossings.load(Ordering::Acquire) != crossings)
    }

    /// Does `work` for each of `count` indices, shared with all threads that call this with the same `tally`, and waits
    /// until all are done. A late thread finds nothing to do, and no thread waits for it. Writes made by `work` are
    /// visible to all afterwards.
    pub fn each(&self, tally: &Tally, count: usize, mut work: impl FnMut(usize)) -> Result<(), Aborted> {
        loop {
            let index = tally.taken.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            work(index);
            if tally.done.fetch_add(1, Ordering::AcqRel) + 1 == count {
                self.news.raise();
            }
        }
        self.wait_until(|| tally.done.load(Ordering::Acquire) == count)
    }

    /// Ends all waiting, now and later.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.news.raise();
    }

    /// How long a thread should spin.
    pub fn awake(&self) -> Duration {
        if self.drowsy.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            self.awake
        }
    }

    /// Makes waiters sleep immediately until the next reset.
    pub fn sleep_at_once(&self) {
        self.drowsy.store(true, Ordering::Relaxed);
    }

    /// Restores the initial state after an abort. No thread may be waiting.
    pub fn reset(&self) {
        self.drowsy.store(false, Ordering::Relaxed);
        self.arrived.store(0, Ordering::Relaxed);
        self.aborted.store(false, Ordering::Release);
    }

    fn wait_until(&self, happened: impl Fn() -> bool) -> Result<(), Aborted> {
        loop {
            // Read this before checking the condition, so that an event in between is not missed.
            let seen = self.news.count();
            if self.aborted.load(Ordering::Acquire) {
                return Err(Aborted);
            }
            if happened() {
                return Ok(());
            }
            self.news.wait(seen, self.awake());
        }
    }
}

/// A team's progress through a number of pieces of work.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    taken: AtomicUsize,
    done: AtomicUsize,
}

impl Tally {
    /// Restarts the count. No thread may be at work.
    pub fn reset(&self) {
        self.taken.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::time::{ClockId, clock_gettime};

    use super::*;

    /// Passes per test; Miri is slow.
    const PASSES: usize = if cfg!(miri) { 3 } else { 50 };

    /// Sleeping immediately, as pools configure it, and almost never sleeping.
    const AWAKE: [Duration; 3] = [
        Duration::ZERO,
        Duration::from_micros(50),
        Duration::from_millis(2),
    ];

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        for awake in AWAKE {
            for threads in [1, 2, 3, 8] {
                let barrier = Barrier::new(threads, awake);
                let arrived = AtomicUsize::new(0);
                let work = || {
                    for pass in 1..=PASSES {
                        arrived.fetch_add(1, Ordering::Relaxed);
                        barrier.wait().unwrap();
                        assert_eq!(arrived.load(Ordering::Relaxed), pass * threads as usize);
                        barrier.wait().unwrap();
                    }
                };
                thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
            }
        }
    }

    #[test]
    fn each_piece_is_done_once_before_anybody_goes_on() {
        for awake in AWAKE {
            for threads in [1, 2, 8] {
                let (barrier, tally) = (Barrier::new(threads, awake), Tally::default());
                let pieces: Vec<AtomicUsize> = (0..30).map(|_| AtomicUsize::new(0)).collect();
                for round in 1..=PASSES.min(20) {
                    tally.reset();
                    let work = || {
                        let piece = |index: usize| {
                            pieces[index].fetch_add(1, Ordering::Relaxed);
                        };
                        barrier.each(&tally, pieces.len(), piece).unwrap();
                        assert!(pieces.iter().all(|piece| piece.load(Ordering::Relaxed) == round));
                    };
                    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
                }
            }
        }
    }

    #[test]
    fn who_is_late_for_pieces_is_not_waited_for() {
        let (barrier, tally) = (Barrier::new(2, Duration::ZERO), Tally::default());
        let mut done = 0;
        barrier.each(&tally, 5, |_| done += 1).unwrap();
        barrier.each(&tally, 5, |_| done += 1).unwrap();
        assert_eq!(done, 5);
    }

    #[test]
    fn an_abort_ends_the_waiting_of_all_and_of_those_who_come_later() {
        for awake in AWAKE {
            for nap in [Duration::ZERO, Duration::from_millis(5)] {
                let barrier = Barrier::new(3, awake);
                thread::scope(|scope| {
                    let waiting = scope.spawn(|| barrier.wait());
                    thread::sleep(nap);
                    barrier.abort();
                    assert_eq!(waiting.join().unwrap(), Err(Aborted));
                    assert_eq!(barrier.wait(), Err(Aborted));
                });
                barrier.reset();
                thread::scope(|scope| {
                    let waiting = [(); 3].map(|()| scope.spawn(|| barrier.wait()));
                    assert!(waiting.into_iter().all(|thread| thread.join().unwrap().is_ok()));
                });
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "measures time")]
    fn who_waits_long_sleeps() {
        let barrier = Barrier::new(2, Duration::from_micros(50));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let before = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
                barrier.wait().unwrap();
                Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap() - before)
            });
            thread::sleep(Duration::from_millis(200));
            barrier.wait().unwrap();
            assert!(waiting.join().unwrap() < Duration::from_millis(20));
        });
    }
}
