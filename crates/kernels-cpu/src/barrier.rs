//! Waiting for one another: a short while awake, then asleep.
//!
//! Threads of one call meet every few tens of microseconds, and being woken by the kernel takes as long. So a waiting
//! thread looks for what it waits for about as long as waking it would take, which costs at most twice the better of
//! the two, and then sleeps: its processor may be wanted by another program, or by the very thread it waits for.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::futex;

/// Looks at a flag between two looks at the clock.
const LOOKS: u32 = 32;

/// A counter that threads wait on. Alone on its cache lines (two, as processors fetch pairs), so that who looks at it
/// is not disturbed by writes beside it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Signal {
    count: AtomicU32,
    sleepers: AtomicU32,
}

impl Signal {
    /// How often it was raised.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Threads that sleep until it is raised.
    #[cfg(test)]
    pub fn sleepers(&self) -> u32 {
        self.sleepers.load(Ordering::SeqCst)
    }

    /// Lets everybody go on who waits for it.
    pub fn raise(&self) {
        // With the orderings of `wait`: either the sleeper sees this count, or it is seen here.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&raw const self.count);
        }
    }

    /// Waits until the count is no longer `seen`: for up to `awake` without sleeping.
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

    /// Whether the count became another within `awake`.
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

/// A thread of the team panicked, so what the others wait for may never come: they should return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted;

/// Where the threads of a team meet.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: u32,
    awake: Duration,
    arrived: AtomicU32,
    crossings: AtomicU32,
    aborted: AtomicBool,
    /// Whether who waits sleeps at once.
    drowsy: AtomicBool,
    /// Raised when something happened that somebody may wait for.
    news: Signal,
}

impl Barrier {
    /// For so many threads, which wait without sleeping for up to `awake`.
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

    /// Waits until all threads are here. What each wrote before, all can read afterwards.
    pub fn wait(&self) -> Result<(), Aborted> {
        let crossings = self.crossings.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Nobody arrives again before the crossing.
            self.arrived.store(0, Ordering::Relaxed);
            self.crossings.fetch_add(1, Ordering::Release);
            self.news.raise();
        }
        self.wait_until(|| self.crossings.load(Ordering::Acquire) != crossings)
    }

    /// Does `work` for each of `count` indices, with whoever else calls this for the same `tally`, and waits until all
    /// of them are done. Who is late finds nothing to do and is not waited for. What was written, all can read
    /// afterwards.
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

    /// Ends everybody's waiting, now and later.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        self.news.raise();
    }

    /// How long a thread should wait without sleeping.
    pub fn awake(&self) -> Duration {
        if self.drowsy.load(Ordering::Relaxed) {
            Duration::ZERO
        } else {
            self.awake
        }
    }

    /// Has who waits sleep at once, until the next reset.
    pub fn sleep_at_once(&self) {
        self.drowsy.store(true, Ordering::Relaxed);
    }

    /// Makes it as new after an abort. Nobody may be waiting.
    pub fn reset(&self) {
        self.drowsy.store(false, Ordering::Relaxed);
        self.arrived.store(0, Ordering::Relaxed);
        self.aborted.store(false, Ordering::Release);
    }

    fn wait_until(&self, happened: impl Fn() -> bool) -> Result<(), Aborted> {
        loop {
            // Before what it waits for: news that come after are not slept through.
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

/// How far a team has come with a number of pieces of work.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    taken: AtomicUsize,
    done: AtomicUsize,
}

impl Tally {
    /// Begins anew. Nobody may be at work.
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

    /// Passes of a test; an interpreter is slow.
    const PASSES: usize = if cfg!(miri) { 3 } else { 50 };

    /// Sleeping at once, as pools have it, and hardly ever sleeping.
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
