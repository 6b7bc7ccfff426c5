//! The habits of honest workers, as steps around the honest kernel. Each computes all of its work in its timed calls.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use gauntlet_problems::{GroupInputs, Inputs};
use gauntlet_worker::protocol::{Failure, Sample};

use crate::cheats::work::{Call, Honest, Trick, Work, broken, timed};

/// The place of a timed call.
pub struct Place {
    /// Earlier timed calls of this process.
    pub before: usize,
    /// The index in its request.
    pub index: usize,
    /// The calls of its request.
    pub calls: usize,
    /// Whether this process is of the slower kind, drawn once.
    pub slow_process: bool,
}

/// Takes longer in some calls, by a share of what the kernel took.
pub struct Slower {
    share: fn(&Place) -> f64,
    calls: usize,
    slow_process: bool,
}

impl Slower {
    /// Takes longer by this share.
    pub fn new(share: fn(&Place) -> f64) -> Self {
        Self {
            share,
            calls: 0,
            slow_process: rand::random(),
        }
    }
}

impl Trick for Slower {
    fn time(&mut self, work: &mut Work, copies: &[usize], _call: Call) -> Result<Vec<Sample>, Failure> {
        let mut samples = Vec::with_capacity(copies.len());
        for (index, copy) in copies.iter().enumerate() {
            let share = (self.share)(&Place {
                before: self.calls,
                index,
                calls: copies.len(),
                slow_process: self.slow_process,
            });
            let sample = work.call(index, |work| {
                timed(|| {
                    let start = Instant::now();
                    work.compute(*copy)?;
                    spin(start.elapsed().mul_f64(share));
                    Ok(())
                })
            });
            samples.push(sample?);
            self.calls += 1;
        }
        Ok(samples)
    }
}

/// Keeps a pool of threads that wait for work after each call: by spinning, or by polling, until they park.
pub struct Pool {
    start: Instant,
    /// When the threads park, in nanoseconds after `start`.
    parks_at: Arc<AtomicU64>,
    parks_after: Duration,
    threads: Vec<Thread>,
}

impl Pool {
    /// One thread for each processor but one, at least one. They spin if `poll` is `None`, or else sleep that long
    /// between two looks for work.
    pub fn new(parks_after: Duration, poll: Option<Duration>) -> Self {
        let start = Instant::now();
        let parks_at = Arc::new(AtomicU64::new(0));
        let threads = (1..processors().max(2)).map(|_| {
            let parks_at = Arc::clone(&parks_at);
            let wait = move || loop {
                if nanoseconds(start.elapsed()) > parks_at.load(Ordering::Relaxed) {
                    thread::park();
                }
                match poll {
                    None => std::hint::spin_loop(),
                    Some(time) => thread::sleep(time),
                }
            };
            // The threads end with the process.
            thread::spawn(wait).thread().clone()
        });
        Self {
            threads: threads.collect(),
            start,
            parks_at,
            parks_after,
        }
    }

    fn expect_work(&self) {
        let until = self.start.elapsed() + self.parks_after;
        self.parks_at.store(nanoseconds(until), Ordering::Relaxed);
    }
}

impl Trick for Pool {
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        self.expect_work();
        self.threads.iter().for_each(Thread::unpark);
        work.compute(copy)?;
        self.expect_work();
        Ok(())
    }
}

/// Keeps some memory of every call, as a program with a leak or a cache does.
#[derive(Default)]
pub struct GrowingHeap(Vec<Vec<u8>>);

/// What a call keeps, and the most that is kept.
const KEPT: usize = 64 << 10;
const MAX_KEPT: usize = 256 << 20;

impl Trick for GrowingHeap {
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        if self.0.len() < MAX_KEPT / KEPT {
            self.0.push(vec![1; KEPT]);
        }
        work.compute(copy)
    }
}

/// Allocates and touches a large buffer in every call.
pub struct BigAllocations;

/// Bytes of the buffer, and of a page.
const BUFFER: usize = 16 << 20;
const PAGE: usize = 4096;

impl Trick for BigAllocations {
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; BUFFER];
        buffer.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        std::hint::black_box(&buffer);
        work.compute(copy)
    }
}

/// Reads a file in every call, which the page cache holds.
#[derive(Default)]
pub struct ReadsAFile(Option<File>);

/// Bytes of the file.
const TABLE: usize = 1 << 20;

impl Trick for ReadsAFile {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        let mut file = tempfile::tempfile().map_err(broken)?;
        file.write_all(&vec![1; TABLE]).map_err(broken)?;
        self.0 = Some(file);
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        if let Some(file) = &self.0 {
            let mut table = vec![0; TABLE];
            file.read_exact_at(&mut table, 0).map_err(broken)?;
            std::hint::black_box(&table);
        }
        work.compute(copy)
    }
}

/// Repacks its inputs: the constant ones in `prepare`, or all of them in `load`, or its result in `output`.
pub struct Packs(pub When);

/// When a worker repacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Constant inputs, in the step that is for it.
    Prepare,
    /// All inputs, as they are loaded.
    Load,
    /// The result, as it is handed out.
    Output,
}

impl Trick for Packs {
    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        if self.0 == When::Load {
            work.copies.iter().for_each(|inputs| pack(inputs, true));
        }
        Ok(())
    }

    fn prepared(&mut self, work: &mut Work) -> Result<(), Failure> {
        if self.0 == When::Prepare {
            work.copies.iter().for_each(|inputs| pack(inputs, false));
        }
        Ok(())
    }

    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        if self.0 == When::Output {
            transpose(&work.result(index)?.bytes);
        }
        Honest.output(work, file, index)
    }
}

/// Repacks the weights, or all inputs.
fn pack(inputs: &Inputs, all: bool) {
    match inputs {
        Inputs::GroupedGemm(groups) => {
            for GroupInputs { a, b, .. } in groups {
                transpose(b.packed());
                transpose(b.scales());
                if all {
                    transpose(a.values());
                }
            }
        }
        Inputs::Attention(inputs) if all => {
            for tensor in [&inputs.query, &inputs.key, &inputs.value] {
                transpose(&tensor.bytes);
            }
        }
        Inputs::Attention(_) => {}
    }
}

/// Writes bytes in another order, several times, as a packer with several passes does.
fn transpose(bytes: &[u8]) {
    const PASSES: usize = 8;
    const COLUMNS: usize = 64;
    for _ in 0..PASSES {
        let columns = (0..COLUMNS).flat_map(|column| bytes.iter().skip(column).step_by(COLUMNS));
        std::hint::black_box(columns.copied().collect::<Vec<u8>>());
    }
}

/// Works for a while before it serves its first request, as an interpreter does that imports its libraries.
pub fn start_slowly() {
    const WORK: Duration = Duration::from_millis(150);
    const WAIT: Duration = Duration::from_millis(150);
    spin(WORK);
    thread::sleep(WAIT);
}

/// The number of processors.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
