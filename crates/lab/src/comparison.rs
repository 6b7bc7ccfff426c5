//! Is the candidate faster? Pairs of fresh worker processes, alternating blocks, planned looks.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gauntlet_device::Device;
use gauntlet_executor::protocol::Sample as Timing;
use gauntlet_executor::{Record, WorkerProcess};
use gauntlet_problem::Case;
use gauntlet_stats::{
    Arm, Assessment, Block, Criteria, Decision, DeclaredPair, Interval, Sample, block_orders, compare,
    compare_declared, median, without_interval,
};
use serde::{Deserialize, Serialize};

use crate::candidate::Candidate;
use crate::error::LabError;
use crate::gates::Trouble;
use crate::observer::Observer;
use crate::round::{Measurement, Round};
use crate::workshop::Workshop;

/// Calls are gathered until they fill this long: on a shared two-core machine lone calls of 4…25 ms strayed by 10 % in a
/// block, and medians of a slot by a third of that. Nor do the clock's grain and the exchange of messages show.
const SLOT: Duration = Duration::from_millis(20);

/// Most calls gathered in one slot.
const MOST_SAMPLES: usize = 256;

/// Operands of one problem never take more than this, however large the last-level cache is said to be.
const MOST_OPERAND_BYTES: u64 = 2 << 30;

/// What was measured, or read from a record, and what it comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// What the criteria make of it.
    pub assessment: Assessment,
    /// Each problem's times.
    pub cases: Vec<CaseTimes>,
    /// Each look at the figures, in order; empty for records.
    pub looks: Vec<Look>,
    /// The seed of the orders of blocks and of the bootstrap; operands of the first case are made from it, those of the
    /// second from the number after it, and so on.
    pub seed: u64,
    /// What the recorded bounds rest on; none for measurements.
    pub declared: Option<String>,
    /// What is missing of the plan, if anything: pairs for which there was no time, cases without recorded times.
    pub ended_early: Option<String>,
}

/// The times of one problem, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CaseTimes {
    /// The case.
    pub case: String,
    /// Median call of the control.
    pub baseline: f64,
    /// Median call of the candidate.
    pub candidate: f64,
    /// All blocks; empty for records.
    pub blocks: Vec<Block>,
}

/// What was known at a look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Look {
    /// Pairs of processes measured by then.
    pub processes: usize,
    /// The suite's interval, at the confidence planned for this look.
    pub interval: Option<Interval>,
    /// What it said.
    pub decision: Decision,
}

/// Measures a candidate against its control until a planned look decides, the plan ends, or the time allowed is over.
pub fn measure(
    workshop: &Workshop,
    round: &Round,
    control: &Candidate,
    candidate: &Candidate,
    allowed: Duration,
    observer: &dyn Observer,
) -> Result<Comparison, Trouble> {
    let plan = &round.file().measurement;
    let criteria = &round.file().criteria;
    let mut bench = Bench::set_up(workshop, round, rand::random())?;
    let result = bench.measure(control, candidate, plan, criteria, allowed, observer);
    bench.clear();
    result
}

/// The operands of every case on disk, and the blocks measured so far.
struct Bench<'a> {
    workshop: &'a Workshop,
    cases: Vec<(&'a Case, PathBuf, usize)>,
    blocks: Vec<Vec<Block>>,
    seed: u64,
}

impl<'a> Bench<'a> {
    fn set_up(workshop: &'a Workshop, round: &'a Round, seed: u64) -> Result<Self, Trouble> {
        let plan = &round.file().measurement;
        let cache = if plan.warm {
            0
        } else {
            last_level_cache(&round.device)
        };
        let mut cases = Vec::new();
        for (index, case) in round.benchmark_cases.iter().enumerate() {
            let (inputs, path) = workshop.write_inputs(case, case.inputs, seed.wrapping_add(index as u64))?;
            cases.push((case, path, copies(inputs.memory_bytes() as u64, cache)));
        }
        let blocks = vec![Vec::new(); cases.len()];
        Ok(Self {
            workshop,
            cases,
            blocks,
            seed,
        })
    }

    fn clear(&self) {
        for (_, path, _) in &self.cases {
            // What is left goes with the workshop's folder.
            let _removed = std::fs::remove_file(path);
        }
    }

    fn measure(
        &mut self,
        control: &Candidate,
        candidate: &Candidate,
        plan: &Measurement,
        criteria: &Criteria,
        allowed: Duration,
        observer: &dyn Observer,
    ) -> Result<Comparison, Trouble> {
        let start = Instant::now();
        let mut looks: Vec<Look> = Vec::new();
        let mut assessment = without_interval(&self.names(), criteria);
        let mut ended_early = None;
        let most = plan.looks.last().copied().unwrap_or_default();
        for processes in 1..=most {
            let each = start.elapsed() / u32::try_from(processes.max(2) - 1).unwrap_or(u32::MAX);
            let in_time = processes == 1 || start.elapsed() + each <= allowed;
            let measured = if in_time {
                self.measure_pair(control, candidate, processes - 1, plan.blocks, &looks, observer)?;
                processes
            } else {
                ended_early = Some(format!(
                    "the time was up after {} of {most} pairs of processes",
                    processes - 1
                ));
                processes - 1
            };
            // When the time is up, the next planned look is taken at once. Its share of the error is its own whenever
            // it is taken, as long as the figures have no say in when; and the clock does not know them.
            let is_news = measured > looks.last().map_or(1, |look| look.processes);
            if is_news && (plan.looks.contains(&measured) || !in_time) {
                assessment = self.assess(criteria, looks.len() + 1)?;
                let (interval, decision) = (assessment.suite.clone(), assessment.decision);
                looks.push(Look {
                    processes: measured,
                    interval,
                    decision,
                });
            }
            if !in_time || assessment.decision != Decision::Inconclusive {
                break;
            }
        }
        let cases = self
            .cases
            .iter()
            .zip(&self.blocks)
            .map(|((case, ..), blocks)| times(case, blocks))
            .collect();
        Ok(Comparison {
            assessment,
            cases,
            looks,
            seed: self.seed,
            declared: None,
            ended_early,
        })
    }

    fn names(&self) -> Vec<String> {
        self.cases.iter().map(|(case, ..)| case.name.clone()).collect()
    }

    fn assess(&self, criteria: &Criteria, look: usize) -> Result<Assessment, LabError> {
        let mut problems = Vec::new();
        for ((case, ..), blocks) in self.cases.iter().zip(&self.blocks) {
            problems.push((case.name.clone(), Sample::from_blocks(blocks)?));
        }
        Ok(compare(&problems, criteria, look, self.seed)?)
    }

    /// Measures all cases in one fresh pair of processes.
    fn measure_pair(
        &mut self,
        control: &Candidate,
        candidate: &Candidate,
        process: usize,
        blocks: usize,
        looks: &[Look],
        observer: &dyn Observer,
    ) -> Result<(), Trouble> {
        let (mut baseline, _) = self.workshop.start(control).map_err(Trouble::Control)?;
        let (mut challenger, _) = self.workshop.start(candidate).map_err(Trouble::Candidate)?;
        // Kept apart until all cases are through: a pair that dies half-way counts for none of them.
        let mut measured = Vec::new();
        for (index, (case, inputs, copies)) in self.cases.iter().enumerate() {
            let so_far =
                looks
                    .last()
                    .and_then(|look| look.interval.as_ref())
                    .map_or(String::new(), |interval| {
                        format!(
                            ", so far {:+.1} … {:+.1} %",
                            100.0 * interval.lower_fraction(),
                            100.0 * interval.upper_fraction()
                        )
                    });
            observer.progress(&format!("process pair {}, {}{so_far}", process + 1, case.name));
            let prepare = |worker: &mut WorkerProcess, candidate: &Candidate| {
                worker.build(&case.problem, &candidate.schedule)?;
                worker.load(inputs, *copies)?;
                worker.time(1, 0, false)?;
                worker.time(1, 0, false)
            };
            let (timed, _) = prepare(&mut baseline, control).map_err(Trouble::Control)?;
            prepare(&mut challenger, candidate).map_err(Trouble::Candidate)?;
            let samples = samples_for(&timed);
            let stream = process * self.cases.len() + index;
            let mut next_copy = 0;
            for order in block_orders(self.seed, stream, blocks) {
                let mut block = Block {
                    process,
                    baseline: Vec::new(),
                    candidate: Vec::new(),
                };
                for arm in order.arms() {
                    let (worker, times) = match arm {
                        Arm::Baseline => (&mut baseline, &mut block.baseline),
                        Arm::Candidate => (&mut challenger, &mut block.candidate),
                    };
                    let (timed, exchange) =
                        worker
                            .time(samples, next_copy, false)
                            .map_err(|error| match arm {
                                Arm::Baseline => Trouble::Control(error),
                                Arm::Candidate => Trouble::Candidate(error),
                            })?;
                    times.push(slot(&timed, exchange)?);
                    next_copy = (next_copy + samples) % copies;
                }
                measured.push((index, block));
            }
        }
        for (index, block) in measured {
            self.blocks[index].push(block);
        }
        Ok(())
    }
}

/// The time of a slot: the median of its calls. Calls that add up to more than the coordinator's own clock saw are
/// not times.
fn slot(timed: &[Timing], exchange: f64) -> Result<f64, Trouble> {
    let calls: Vec<f64> = timed.iter().map(|timing| timing.call).collect();
    let sum: f64 = calls.iter().sum();
    if sum > exchange {
        return Err(Trouble::Void(format!(
            "a worker reports calls of {sum:.6} s together in an exchange that took {exchange:.6} s"
        )));
    }
    Ok(median(&calls))
}

fn samples_for(timed: &[Timing]) -> usize {
    let call = timed.first().map_or(1.0, |timing| timing.call).max(1e-9);
    ((SLOT.as_secs_f64() / call).ceil() as usize).clamp(1, MOST_SAMPLES)
}

/// Bytes of the last cache before memory; 0 where it is not known, so that nothing rotates.
fn last_level_cache(device: &Device) -> u64 {
    let of_cpu = device.cpu.as_ref().and_then(|cpu| cpu.last_level_size.as_ref());
    of_cpu
        .or(device.memory.l2_size.as_ref())
        .map_or(0, |size| size.get() as u64)
}

/// How many copies of a problem's operands make its rotation leave the last-level cache behind.
fn copies(bytes: u64, cache: u64) -> usize {
    let bytes = bytes.max(1);
    let wanted = (2 * cache).min(MOST_OPERAND_BYTES).div_ceil(bytes);
    usize::try_from(wanted).unwrap_or(usize::MAX).max(1)
}

fn times(case: &Case, blocks: &[Block]) -> CaseTimes {
    let all = |arm: fn(&Block) -> &Vec<f64>| -> Vec<f64> { blocks.iter().flat_map(arm).copied().collect() };
    CaseTimes {
        case: case.name.clone(),
        baseline: median(&all(|block| &block.baseline)),
        candidate: median(&all(|block| &block.candidate)),
        blocks: blocks.to_vec(),
    }
}

/// Compares recorded times by the bounds that the record declares, on the cases with a time on both sides; none when
/// there is no such case.
pub fn compare_recorded(
    record: &Record,
    round: &Round,
    control: &Candidate,
    candidate: &Candidate,
) -> Result<Option<Comparison>, LabError> {
    let criteria = &round.file().criteria;
    let of = |name: &str| record.candidates.get(name).map(|candidate| &candidate.times);
    let (Some(baseline), Some(challenger)) = (of(&control.name), of(&candidate.name)) else {
        return Ok(None);
    };
    let mut cases = Vec::new();
    let mut absent = Vec::new();
    for case in &round.benchmark_cases {
        if let (Some(baseline), Some(challenger)) = (baseline.get(&case.name), challenger.get(&case.name)) {
            cases.push(CaseTimes {
                case: case.name.clone(),
                baseline: median(baseline.as_slice()) * 1e-6,
                candidate: median(challenger.as_slice()) * 1e-6,
                blocks: Vec::new(),
            });
        } else {
            absent.push(case.name.as_str());
        }
    }
    if cases.is_empty() {
        return Ok(None);
    }
    let assessment = match &record.uncertainty {
        Some(uncertainty) => {
            let pairs: Vec<_> = cases
                .iter()
                .map(|times| {
                    let pair = DeclaredPair {
                        baseline: times.baseline,
                        candidate: times.candidate,
                        relative_uncertainty: uncertainty.relative,
                    };
                    (times.case.clone(), pair)
                })
                .collect();
            compare_declared(&pairs, criteria)?
        }
        None => without_interval(
            &cases.iter().map(|times| times.case.clone()).collect::<Vec<_>>(),
            criteria,
        ),
    };
    let declared = record.uncertainty.as_ref().map(|uncertainty| {
        format!(
            "one number a side has no interval of its own, so each recorded time is taken to be within {:.1} %: {}",
            uncertainty.relative * 100.0,
            uncertainty.why
        )
    });
    Ok(Some(Comparison {
        assessment,
        cases,
        looks: Vec::new(),
        seed: 0,
        declared,
        ended_early: (!absent.is_empty())
            .then(|| format!("no times of both sides for {}", absent.join(", "))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(call: f64) -> Timing {
        Timing {
            call,
            kernel: None,
            clock: None,
            phases: Default::default(),
        }
    }

    #[test]
    fn calls_longer_than_the_exchange_are_refused() {
        assert_eq!(slot(&[timing(1.0), timing(3.0), timing(2.0)], 6.5).unwrap(), 2.0);
        assert!(slot(&[timing(1.0), timing(3.0)], 3.5).is_err());
    }

    #[test]
    fn slots_are_filled_and_rotation_leaves_the_cache() {
        assert_eq!(samples_for(&[timing(1.0)]), 1);
        assert_eq!(samples_for(&[timing(1e-3)]), 20);
        assert_eq!(samples_for(&[timing(1e-9)]), MOST_SAMPLES);
        assert_eq!(copies(100, 0), 1);
        assert_eq!(copies(100, 1000), 20);
        assert_eq!(copies(1 << 30, 1 << 40), 2);
    }
}
