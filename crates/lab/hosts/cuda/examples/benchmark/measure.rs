//! Holds operands and kernels on the device and times calls.

use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use gauntlet_families::operations;
use gauntlet_kernels_cuda::{Engine, Kernel, Operands, RunError};
use gauntlet_problems::{Operation, Schedule};
use gauntlet_task::InputKind;
use serde::Serialize;

use super::cases::Case;
use super::schedules::Step;

/// Distinct operand sets of a case.
const SETS: usize = 4;
/// The most copies of the operands.
const MOST_COPIES: usize = 64;
/// Operands of this many level-2 caches or more exist only once: a call finds none of them in the cache anyway, and
/// drawing gigabytes several times takes minutes.
const LARGE_CACHES: usize = 8;
/// The least number of calls in a graph: enough for the graph's start-up time to be negligible even for the shortest
/// calls.
const GRAPH_CALLS: usize = 60;
/// Calls that are timed individually.
const CALLS: usize = 30;
/// Calls whose host time is measured.
const QUEUED: usize = 1000;

/// The measurements of a case under a schedule; times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub case: String,
    pub schedule: String,
    pub words: Schedule,
    /// The kernel, as messages name it.
    pub kernel: Option<String>,
    /// Copies of the operands; calls rotate over them.
    pub copies: usize,
    /// Median time of a graph replay divided by its calls; `None` if set-up is needed for each call.
    pub graph_us: Option<f64>,
    /// Medians of individual calls: the device's time, and the whole time that the caller waits.
    pub kernel_us: Option<f64>,
    pub call_us: Option<f64>,
    /// The host's time to queue a call, including set-up where each call needs it.
    pub host_us: Option<f64>,
    pub host_p99_us: Option<f64>,
    /// Median clock of the multiprocessors after a call.
    pub clock_mhz: Option<f64>,
    pub throttling: Vec<&'static str>,
    /// The reason if there is no kernel.
    pub refused: Option<String>,
}

/// A GPU with the operands and kernels of all requested cases.
pub struct Bench {
    engine: Engine,
    kind: InputKind,
    operands: HashMap<String, Vec<Rc<Operands>>>,
    kernels: HashMap<(String, Schedule), Kernel>,
}

impl Bench {
    pub fn new(engine: Engine, kind: InputKind) -> Self {
        Self {
            engine,
            kind,
            operands: HashMap::new(),
            kernels: HashMap::new(),
        }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Measures one case under one schedule; a schedule without a kernel gives a row too.
    pub fn row(&mut self, case: &Case, step: &Step) -> Result<Row, Box<dyn Error>> {
        let mut row = Row {
            case: case.name.clone(),
            schedule: step.name.clone(),
            words: step.schedule.clone(),
            kernel: None,
            copies: 0,
            graph_us: None,
            kernel_us: None,
            call_us: None,
            host_us: None,
            host_p99_us: None,
            clock_mhz: None,
            throttling: Vec::new(),
            refused: None,
        };
        let key = (case.name.clone(), step.schedule.clone());
        if !self.kernels.contains_key(&key) {
            let mut kernel = match self.engine.build(&case.problem, &step.schedule) {
                Ok(kernel) => kernel,
                Err(error) => {
                    row.refused = Some(error.to_string());
                    return Ok(row);
                }
            };
            kernel.attach(self.operands(case)?)?;
            self.kernels.insert(key.clone(), kernel);
        }
        let kernel = self
            .kernels
            .get_mut(&key)
            .ok_or("a kernel that was just built is gone")?;
        let about = |error: RunError| format!("{}, {}: {error}", case.name, step.name);
        fill(&mut row, kernel).map_err(about)?;
        let reading = self.engine.monitor().and_then(|monitor| monitor.read().ok());
        row.throttling = reading.map_or_else(Vec::new, |reading| reading.throttling);
        Ok(row)
    }

    /// Frees the memory of a case.
    pub fn forget(&mut self, case: &Case) {
        self.kernels.retain(|(name, _), _| *name != case.name);
        self.operands.remove(&case.name);
    }

    fn operands(&mut self, case: &Case) -> Result<&[Rc<Operands>], RunError> {
        if !self.operands.contains_key(&case.name) {
            let copies = copies(&case.problem, self.engine.device().l2_bytes);
            let generate = |seed| operations::generate(&case.problem, self.kind, seed);
            let sets: Vec<_> = (1..=SETS.min(copies) as u64).map(generate).collect();
            let operands = self.engine.load(&case.problem, &sets, copies)?;
            self.operands.insert(case.name.clone(), operands);
        }
        Ok(&self.operands[&case.name])
    }
}

fn fill(row: &mut Row, kernel: &mut Kernel) -> Result<(), RunError> {
    row.kernel = Some(kernel.name().to_owned());
    row.copies = kernel.copies();
    row.graph_us = match kernel.replay(GRAPH_CALLS.next_multiple_of(kernel.copies())) {
        Ok(time) => Some(microseconds(time)),
        Err(RunError::SetupInGraph) => None,
        Err(error) => return Err(error),
    };
    let times = kernel.time(&(0..CALLS).collect::<Vec<_>>(), true)?;
    row.kernel_us = median(times.iter().filter_map(|call| call.kernel).map(microseconds));
    row.call_us = median(times.iter().map(|call| microseconds(call.call)));
    row.clock_mhz = median(times.iter().filter_map(|call| call.clock));
    let queued = kernel.time_queuing(QUEUED)?;
    row.host_us = Some(microseconds(queued[QUEUED / 2]));
    row.host_p99_us = Some(microseconds(queued[QUEUED * 99 / 100]));
    Ok(())
}

/// The number of copies of the operands: all sets, and for GEMMs as many as take twice the level-2 cache, so that no
/// call finds its operands there; one copy of large operands. An attention call comes right after the producer of its
/// operands, so it finds them in the cache.
fn copies(problem: &Operation, l2_bytes: usize) -> usize {
    if matches!(problem, Operation::Attention(_)) {
        return SETS;
    }
    let bytes = problem.bytes().max(1) as usize;
    if bytes >= LARGE_CACHES * l2_bytes {
        return 1;
    }
    (2 * l2_bytes).div_ceil(bytes).clamp(SETS, MOST_COPIES)
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The upper median.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    #[test]
    fn copies_are_all_sets_and_twice_the_cache() {
        let cases = cases::named(&["group-gemm/case-1".to_owned(), "decode/m1".to_owned()]).unwrap();
        let of = |case: &Case| copies(&case.problem, 50 << 20);
        assert_eq!(of(&cases[0]), 4);
        // 16.5 MB a copy.
        assert_eq!(of(&cases[1]), 7);
        let large = cases::named(&["moe/deepseek-v3-gate-up-512".to_owned()]).unwrap();
        assert_eq!(of(&large[0]), 1);
    }

    #[test]
    fn the_median_is_the_upper_one() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), Some(3.0));
        assert_eq!(median(std::iter::empty()), None);
    }
}
