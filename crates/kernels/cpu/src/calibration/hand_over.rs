//! The costs of coordination between threads: a launch of the pool, and handing a panel over.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bench::{Bench, median};
use super::{CalibrationError, CalibrationFigure, cost};
use crate::memory::AlignedBuffer;
use crate::pool::lock;
use crate::ring::{Item, Ring};

/// How long threads sleep before they are woken: about as long as a tile takes.
const NAP: Duration = Duration::from_micros(200);

/// Panels handed over, and their depth: together more than a first-level cache, less than a second-level one.
const PANELS: usize = 8;
const DEPTH: usize = 192;

/// Steps handed over in a row.
const STEPS: usize = 200;

pub(super) fn measure(bench: &Bench) -> Result<Vec<CalibrationFigure>, CalibrationError> {
    let mut figures = Vec::new();
    if bench.pool.threads() > 1 {
        figures.push(cost("launch.wake", "launch", bench.caller(|| Ok(wake(bench)))?));
        figures.push(cost("launch.join", "launch", bench.caller(|| Ok(join(bench)))?));
        figures.push(cost("ring.wake", "wait", bench.caller(|| Ok(ring_wake(bench)))?));
    } else {
        // A lone thread wakes no other.
        for name in ["launch.wake", "launch.join", "ring.wake"] {
            figures.push(cost(name, "launch", 0.0));
        }
    }
    let [read, write] = panels(bench)?;
    figures.push(cost("ring.read", "step of depth", read));
    figures.push(cost("ring.write", "step of depth", write));
    figures.push(cost("ring.step", "step", bench.caller(|| Ok(ring_step()))?));
    Ok(figures)
}

/// Seconds from the call until the last of the other threads has begun.
fn wake(bench: &Bench) -> f64 {
    std::thread::sleep(NAP);
    let begun = Mutex::new(Duration::ZERO);
    let start = Instant::now();
    bench.pool.run(&|thread| {
        let now = start.elapsed();
        if thread > 0 {
            let mut latest = lock(&begun);
            *latest = now.max(*latest);
        }
    });
    lock(&begun).as_secs_f64()
}

/// Seconds from the end of another thread's work until the waiting caller continues.
fn join(bench: &Bench) -> f64 {
    let ended = Mutex::new(Instant::now());
    bench.pool.run(&|thread| {
        if thread > 0 {
            work(NAP);
            *lock(&ended) = Instant::now();
        }
    });
    lock(&ended).elapsed().as_secs_f64()
}

/// Seconds from publishing a panel until a consumer that waits for it has it.
fn ring_wake(bench: &Bench) -> f64 {
    let ring = Ring::new(1, 2);
    let (sent, taken) = (Mutex::new(Instant::now()), Mutex::new(Duration::ZERO));
    bench.pool.run(&|thread| match thread {
        0 => {
            work(NAP);
            if let Some((lane, _)) = ring.claim(0) {
                *lock(&sent) = Instant::now();
                ring.publish(lane, Item::default());
            }
            work(NAP);
            ring.close(0);
        }
        1 if ring.take(0).is_some() => {
            *lock(&taken) = lock(&sent).elapsed();
            ring.release(0);
        }
        _ => {}
    });
    lock(&taken).as_secs_f64()
}

/// Seconds per step through a ring without waiting, producer and consumer together.
fn ring_step() -> f64 {
    let ring = Ring::new(1, 2);
    let start = Instant::now();
    for step in 0..STEPS {
        if let Some((lane, _)) = ring.claim(0) {
            ring.publish(lane, Item { tile: 0, step });
        }
        if ring.take(0).is_some() {
            ring.release(0);
        }
    }
    start.elapsed().as_secs_f64() / STEPS as f64
}

/// The extra seconds per step of depth when a panel moves between threads: for multiplying a panel that another thread
/// wrote, and for writing a panel that another thread read.
fn panels(bench: &Bench) -> Result<[f64; 2], CalibrationError> {
    let (rows, columns) = (bench.instructions.rows(), bench.instructions.columns());
    let mut row = AlignedBuffer::zeroed(DEPTH * rows)?;
    row.values_mut().fill(0.5);
    let sums = Mutex::new(AlignedBuffer::zeroed(rows * columns)?);
    let panels = (0..PANELS)
        .map(|_| AlignedBuffer::zeroed(DEPTH * columns).map(Mutex::new))
        .collect::<Result<Vec<_>, _>>()?;
    // One thread at a time works on all panels, so that the two measurements differ only in where the panels are cached.
    let write = || {
        let start = Instant::now();
        panels
            .iter()
            .for_each(|panel| lock(panel).values_mut().fill(std::hint::black_box(0.25)));
        start.elapsed().as_secs_f64()
    };
    let read = || {
        let mut sums = lock(&sums);
        let start = Instant::now();
        for panel in &panels {
            let (panel, sums) = (lock(panel), sums.values_mut());
            bench
                .instructions
                .multiply(DEPTH, row.values(), panel.values(), sums, true);
        }
        start.elapsed().as_secs_f64()
    };
    let steps = |writer: usize| -> Result<[f64; 2], CalibrationError> {
        let on = |thread: usize, work: &(dyn Fn() -> f64 + Sync)| {
            let took = Mutex::new(0.0);
            bench.pool.run(&|own| {
                if own == thread {
                    *lock(&took) = work();
                }
            });
            took.into_inner().unwrap_or_else(PoisonError::into_inner)
        };
        let mut written = Vec::new();
        let read = bench.caller(|| {
            written.push(on(writer, &write));
            Ok(on(0, &read))
        })?;
        Ok([read, median(written)].map(|seconds| seconds / (PANELS * DEPTH) as f64))
    };
    let own = steps(0)?;
    let others = steps(bench.pool.threads() - 1)?;
    Ok([others[0] - own[0], others[1] - own[1]])
}

/// Keeps the thread busy.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
