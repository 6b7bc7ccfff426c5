//! Cheats that compute correctly but lie about the time, or compute outside of the timed interval.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_problems::{Inputs, Output};
use gauntlet_worker::protocol::{Failure, Sample};

use super::lesser::{Cut, Lesser};
use super::work::{Call, Honest, Trick, Work, broken, sample, timed};

/// Reports a different time than was measured, in seconds.
pub struct Reports(pub fn(f64) -> f64);

impl Trick for Reports {
    fn time(&mut self, work: &mut Work, copies: &[usize], _call: Call) -> Result<Vec<Sample>, Failure> {
        let report = |(index, copy): (usize, &usize)| {
            work.call(index, |work| {
                let start = Instant::now();
                work.compute(*copy)?;
                Ok(sample((self.0)(start.elapsed().as_secs_f64())))
            })
        };
        copies.iter().enumerate().map(report).collect()
    }
}

/// Reports a negative time for a phase.
pub struct NegativePhase;

impl Trick for NegativePhase {
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let mut reported = Reports(|time| time).time(work, copies, call)?;
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
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let twice = [copies, copies].concat();
        work.begin(twice.len());
        Reports(|time| time).time(work, &twice, call)
    }
}

/// The share of the true time that cheats on the clock report.
const SHOWN: f64 = 0.6;

/// Stops the clock with two fifths of the calls still to be done; a thread completes them, and the next request waits
/// for it.
#[derive(Default)]
pub struct StopsEarly {
    /// The first call left, and the results from it on.
    left: Option<(usize, JoinHandle<Vec<Output>>)>,
}

impl Trick for StopsEarly {
    fn asked(&mut self, work: &mut Work) {
        let Some((first, left)) = self.left.take() else {
            return;
        };
        for (index, output) in left.join().unwrap_or_default().into_iter().enumerate() {
            // After a build, the results belong to another problem.
            if output.parts == work.output.parts
                && let Ok(result) = work.result(first + index)
            {
                *result = output;
            }
        }
    }

    fn time(&mut self, work: &mut Work, copies: &[usize], _call: Call) -> Result<Vec<Sample>, Failure> {
        let done = ((copies.len() as f64 * SHOWN).ceil() as usize).max(1);
        let (now, later) = copies.split_at(done);
        let reported = Reports(|time| time).time(work, now, Call::Timed)?;
        let shown = reported.iter().map(|sample| sample.call).sum::<f64>() / copies.len() as f64;
        if !later.is_empty() {
            let mut kernel = work.kernel_for(&work.problem)?;
            let output = Output::poisoned(&work.problem);
            let operands: Vec<Inputs> = later
                .iter()
                .map(|copy| work.copies[copy % work.copies.len()].clone())
                .collect();
            let compute = move || {
                let each = operands.iter().map(|copy| {
                    let mut output = output.clone();
                    // If it fails, the output stays poisoned, which a gate detects.
                    let _computed = kernel.run(copy, &mut output);
                    output
                });
                each.collect()
            };
            self.left = Some((done, thread::spawn(compute)));
        }
        Ok(vec![sample(shown); copies.len()])
    }
}

/// Timed calls after a build that are not yet counted.
const WARM_UP: usize = 2;

/// When a cheat computes that has its result ready before the clock starts, or computes it after the clock has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// Within `load`.
    InLoad,
    /// Within `prepare`, although the operands are not constant.
    InPrepare,
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
    /// The copies of the calls of the last request; `None` for those that were computed.
    left: Vec<Option<usize>>,
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
            left: Vec::new(),
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
        if self.elsewhere == Elsewhere::InPrepare {
            return Ok(());
        }
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
            Elsewhere::InOutput | Elsewhere::InPrepare => {}
        }
        Ok(())
    }

    fn prepared(&mut self, work: &mut Work) -> Result<(), Failure> {
        if self.elsewhere == Elsewhere::InPrepare {
            for copy in 0..work.copies.len() {
                work.compute(copy)?;
                self.results.push(work.output.bytes.clone());
            }
        }
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        let start = Instant::now();
        // The first calls after a build are an uncounted warm-up: they are honest, to learn the honest time.
        if !call.is_timed() || self.honest_calls < WARM_UP {
            work.compute(copy)?;
            self.honest_calls += usize::from(call.is_timed());
            self.honest = self.honest.min(start.elapsed().as_secs_f64());
            self.left.push(None);
            return Ok(());
        }
        self.left.push(Some(copy));
        if let Some(under_way) = self.under_way.take() {
            self.results = under_way.join().map_err(|_| broken("the thread failed"))?;
        }
        if let Some(result) = self.results.get(copy % work.copies.len()) {
            work.output.bytes.copy_from_slice(result);
        }
        while self.waits && start.elapsed().as_secs_f64() < SHOWN * self.honest {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        self.left.clear();
        let each = copies.iter().enumerate();
        each.map(|(index, copy)| work.call(index, |work| timed(|| self.compute(work, *copy, call))))
            .collect()
    }

    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        if self.elsewhere == Elsewhere::InOutput
            && let Some(copy) = self.left.get_mut(index).and_then(Option::take)
        {
            work.call(index, |work| work.compute(copy))?;
        }
        Honest.output(work, file, index)
    }
}

/// Honest in the first call on each copy of new operands, whose result may be unknown; later calls leave some rows out
/// and take them from that result.
pub struct KeepsRows {
    /// The number of rows that are computed in later calls, given their total.
    rows: fn(usize) -> usize,
    /// Whether lone calls are honest.
    honest_alone: bool,
    lesser: Option<Lesser>,
    kept: HashMap<usize, Vec<u8>>,
}

impl KeepsRows {
    /// Computes this many rows in later calls.
    pub fn computing(rows: fn(usize) -> usize) -> Self {
        Self {
            rows,
            honest_alone: false,
            lesser: None,
            kept: HashMap::new(),
        }
    }

    /// The same, and honest in requests of one call.
    pub fn in_long_requests(rows: fn(usize) -> usize) -> Self {
        Self {
            honest_alone: true,
            ..Self::computing(rows)
        }
    }
}

impl Trick for KeepsRows {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.lesser = None;
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        let cut = Cut {
            rows: self.rows,
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

    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let lone = self.honest_alone && copies.len() == 1;
        let call = if lone { Call::Run } else { call };
        let each = copies.iter().enumerate();
        each.map(|(index, copy)| work.call(index, |work| timed(|| self.compute(work, *copy, call))))
            .collect()
    }
}

/// Reports its shortest time in place of every time.
pub struct ReportsBest;

impl Trick for ReportsBest {
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let mut reported = Reports(|time| time).time(work, copies, call)?;
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
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let reported = Reports(|time| time).time(work, copies, call)?;
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
