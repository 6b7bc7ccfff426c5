//! Cheats that compute correctly but lie about the time, or compute outside of the timed interval.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_operations::{Inputs, Output};
use gauntlet_worker::protocol::{Failure, Sample};

use super::lesser::{Cut, Lesser};
use super::work::{Call, Trick, Work, broken, sample};

/// Reports a different time than was measured, in seconds.
pub struct Reports(pub fn(f64) -> f64);

impl Trick for Reports {
    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        _call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        let report = |copy| {
            let start = Instant::now();
            work.compute(copy)?;
            Ok(sample((self.0)(start.elapsed().as_secs_f64())))
        };
        (first..first + samples).map(report).collect()
    }
}

/// Reports a negative time for a phase.
pub struct NegativePhase;

impl Trick for NegativePhase {
    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        let mut reported = Reports(|time| time).time(work, samples, first, call)?;
        if call == Call::Traced {
            for sample in &mut reported {
                sample.phases = [("multiply".to_owned(), -1.0), ("load".to_owned(), 1.0)].into();
            }
        }
        Ok(reported)
    }
}

/// Reports more times than were requested.
pub struct TooManyTimes;

impl Trick for TooManyTimes {
    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        Reports(|time| time).time(work, 2 * samples, first, call)
    }
}

/// The share of the true time that cheats on the clock report.
const SHOWN: f64 = 0.6;

/// Stops the clock with two fifths of the calls still to be done; a thread completes them, and the next request waits
/// for it.
#[derive(Default)]
pub struct StopsEarly {
    left: Option<JoinHandle<Output>>,
}

impl Trick for StopsEarly {
    fn asked(&mut self, work: &mut Work) {
        let left = self.left.take().map(JoinHandle::join);
        // After a build, the result belongs to another problem.
        if let Some(Ok(output)) = left
            && output.parts == work.output.parts
        {
            work.output = output;
        }
    }

    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        _call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        let done = ((samples as f64 * SHOWN).ceil() as usize).max(1);
        let reported = Reports(|time| time).time(work, done, first, Call::Timed)?;
        let shown = reported.iter().map(|sample| sample.call).sum::<f64>() / samples as f64;
        if done < samples {
            let mut kernel = work.kernel_for(&work.problem)?;
            let mut output = Output::poisoned(&work.problem);
            let copies: Vec<Inputs> = (first + done..first + samples)
                .map(|copy| work.copies[copy % work.copies.len()].clone())
                .collect();
            self.left = Some(thread::spawn(move || {
                for copy in &copies {
                    // If it fails, the output stays poisoned, which a gate detects.
                    let _computed = kernel.run(copy, &mut output);
                }
                output
            }));
        }
        Ok(vec![sample(shown); samples])
    }
}

/// Timed calls after a build that are not yet counted.
const WARM_UP: usize = 2;

/// When a cheat computes that has its result ready before the clock starts, or computes it after the clock has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// Within `load`.
    InLoad,
    /// In a thread that `load` starts and does not wait for.
    AfterLoad,
    /// Within `output`.
    InOutput,
}

/// Computes outside of timed calls; timed calls copy the result and wait as long as a fast kernel might take.
pub struct Computes {
    elsewhere: Elsewhere,
    /// Whether to wait at all.
    waits: bool,
    /// The shortest of the honest calls since the last build, in seconds.
    honest: f64,
    honest_calls: usize,
    under_way: Option<JoinHandle<Vec<Vec<u8>>>>,
    results: Vec<Vec<u8>>,
    last_copy: usize,
}

impl Computes {
    /// Computes elsewhere, and reports plausible times.
    pub fn new(elsewhere: Elsewhere) -> Self {
        Self {
            elsewhere,
            waits: true,
            honest: f64::INFINITY,
            honest_calls: 0,
            under_way: None,
            results: Vec::new(),
            last_copy: 0,
        }
    }

    /// Copies the result without waiting.
    pub fn at_once(elsewhere: Elsewhere) -> Self {
        Self {
            waits: false,
            ..Self::new(elsewhere)
        }
    }
}

impl Trick for Computes {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        (self.honest, self.honest_calls) = (f64::INFINITY, 0);
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        self.results.clear();
        let mut kernel = work.kernel_for(&work.problem)?;
        let (copies, mut output) = (work.copies.clone(), Output::poisoned(&work.problem));
        let mut compute_all = move || -> Vec<Vec<u8>> {
            let compute = |copy: &Inputs| {
                // If it fails, the previous result stays, which a gate detects.
                let _computed = kernel.run(copy, &mut output);
                output.bytes.clone()
            };
            copies.iter().map(compute).collect()
        };
        match self.elsewhere {
            Elsewhere::InLoad => self.results = compute_all(),
            Elsewhere::AfterLoad => self.under_way = Some(thread::spawn(compute_all)),
            Elsewhere::InOutput => {}
        }
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        let start = Instant::now();
        self.last_copy = copy % work.copies.len();
        // The first calls after a build are an uncounted warm-up: they are honest, to learn the honest time.
        if !call.is_timed() || self.honest_calls < WARM_UP {
            work.compute(copy)?;
            self.honest_calls += usize::from(call.is_timed());
            self.honest = self.honest.min(start.elapsed().as_secs_f64());
            return Ok(());
        }
        if let Some(under_way) = self.under_way.take() {
            self.results = under_way.join().map_err(|_| broken("the thread failed"))?;
        }
        if let Some(result) = self.results.get(self.last_copy) {
            work.output.bytes.copy_from_slice(result);
        }
        while self.waits && start.elapsed().as_secs_f64() < SHOWN * self.honest {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn output(&mut self, work: &mut Work, file: &Path) -> Result<u64, Failure> {
        if self.elsewhere == Elsewhere::InOutput {
            work.compute(self.last_copy)?;
        }
        work.output.save(file).map_err(broken)?;
        Ok(work.output.bytes.len() as u64)
    }
}

/// Honest in the first call on each copy of new operands, whose result may be unknown; later calls leave some rows out
/// and take them from that result.
#[derive(Default)]
pub struct KeepsRows {
    lesser: Option<Lesser>,
    kept: HashMap<usize, Vec<u8>>,
}

impl Trick for KeepsRows {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.lesser = None;
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        let cut = Cut {
            rows: |rows| rows - rows / 2,
            ..Cut::NONE
        };
        self.lesser = Lesser::new(work, &cut)?;
        self.kept.clear();
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        let copy = copy % work.copies.len();
        match (&mut self.lesser, self.kept.get(&copy)) {
            (Some(lesser), Some(kept)) if call.is_timed() => {
                work.output.bytes.copy_from_slice(kept);
                lesser.compute(copy, &mut work.output)
            }
            _ => {
                work.compute(copy)?;
                self.kept.insert(copy, work.output.bytes.clone());
                Ok(())
            }
        }
    }
}

/// Reports its shortest time in place of every time.
pub struct ReportsBest;

impl Trick for ReportsBest {
    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        let mut reported = Reports(|time| time).time(work, samples, first, call)?;
        let best = reported
            .iter()
            .map(|sample| sample.call)
            .fold(f64::INFINITY, f64::min);
        reported.fill(sample(best));
        Ok(reported)
    }
}

/// Goes through memory after its last timed call and before it answers, so that the baseline starts with cold caches.
pub struct DirtiesCaches {
    memory: Vec<u8>,
}

impl DirtiesCaches {
    /// Uses more memory than a core's own caches hold.
    pub fn new() -> Self {
        Self {
            memory: vec![1; 32 << 20],
        }
    }
}

impl Trick for DirtiesCaches {
    fn time(
        &mut self,
        work: &mut Work,
        samples: usize,
        first: usize,
        call: Call,
    ) -> Result<Vec<Sample>, Failure> {
        let reported = Reports(|time| time).time(work, samples, first, call)?;
        self.memory
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_add(1));
        std::hint::black_box(&self.memory);
        Ok(reported)
    }
}

/// Sleeps instead of computing.
pub struct Sleeps(pub Duration);

impl Trick for Sleeps {
    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        if call.is_timed() {
            thread::sleep(self.0);
            return Ok(());
        }
        work.compute(copy)
    }
}
