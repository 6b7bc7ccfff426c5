//! Race-free: the same inputs give the same bits, run after run; where there is a race checker, what it says.

use std::collections::HashSet;
use std::mem::discriminant;

use gauntlet_device::Device;
use gauntlet_executor::WorkerProcess;
use gauntlet_problem::{Case, InputKind};
use gauntlet_schedule::check;

use super::right::{SMALLEST, cases_for, run_once};
use super::{Examination, Executor, Found, Gate, Trouble};
use crate::candidate::Part;
use crate::finding::Evidence;
use crate::operands::Operands;
use crate::predicted::NOT_RUN;
use crate::verdict::Verdict;
use crate::workshop::Workshop;

/// Runs compared for each case; a race that shows once in two runs is missed once in 2⁷ cases.
const RUNS: usize = 8;

/// Compares bits over repeated runs on values on which the order of summation shows.
pub struct RaceFree;

impl Gate for RaceFree {
    fn name(&self) -> &'static str {
        "race-free"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, Trouble> {
        match (examination.recorded(), examination.executor) {
            (Some(Err(found)), _) => Ok(found),
            (Some(Ok(record)), _) => Ok(match &record.races {
                None => Found::skip("the record holds no run of a race checker"),
                Some(said) if said == "none" => {
                    Found::pass("recorded: the race checker found none", Evidence::Reason)
                }
                Some(said) => Found::stop(Verdict::Racy, format!("recorded: {said}"), Evidence::Reason),
            }),
            (None, Executor::Live(workshop)) => live(examination, workshop),
            (None, Executor::Recorded(_)) => Ok(Found::skip("not recorded")),
            (None, Executor::Predicted) => Ok(Found::skip(NOT_RUN)),
        }
    }
}

fn live(examination: &Examination, workshop: &Workshop) -> Result<Found, Trouble> {
    let seed: u64 = rand::random();
    let mut differing = Vec::new();
    let mut repeated = 0;
    for part in examination.candidate.parts(examination.round) {
        let cases = cases(&part, &examination.round.device);
        repeated += cases.len();
        let (mut worker, _) = workshop.start(&part.candidate).map_err(Trouble::Candidate)?;
        for case in &cases {
            examination.observer.progress(&case.name);
            worker
                .build(&case.problem, &part.candidate.schedule)
                .map_err(Trouble::Candidate)?;
            if differs(workshop, &mut worker, case, seed)? {
                differing.push(case.name.clone());
            }
        }
    }
    let runs = repeated * RUNS;
    let evidence = Evidence::Repeats {
        runs,
        differing: differing.clone(),
        seed,
    };
    Ok(if differing.is_empty() {
        Found::pass(
            format!("{runs} runs over {repeated} cases, every repeat bit for bit the same"),
            evidence,
        )
    } else {
        let reason = format!("two runs on the same inputs differ in {}", differing.join(", "));
        Found::stop(Verdict::Racy, reason, evidence)
    })
}

/// Whether two runs of a case on the same operands differ.
fn differs(workshop: &Workshop, worker: &mut WorkerProcess, case: &Case, seed: u64) -> Result<bool, Trouble> {
    let (_, operands) = Operands::write(workshop, case, InputKind::Wide, seed)?;
    worker.load(&[operands.path()], 1).map_err(Trouble::Candidate)?;
    let first = run_once(workshop, worker, &case.problem)?;
    for _ in 1..RUNS {
        if run_once(workshop, worker, &case.problem)?.bytes != first.bytes {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Of each family the case made to be deep, which exercises the pipeline most, and the smallest that is timed.
fn cases(part: &Part, device: &Device) -> Vec<Case> {
    let (candidate, timed) = (&part.candidate, &part.timed);
    let mut cases = cases_for(&candidate.schedule, timed);
    cases.retain(|case| {
        let allowed = || check(&candidate.schedule, &case.problem, device).is_empty();
        case.name != SMALLEST && (candidate.command.is_some() || allowed())
    });
    let mut smallest: Vec<&Case> = timed.iter().collect();
    smallest.sort_by_key(|case| case.problem.flops());
    let mut families = HashSet::new();
    smallest.retain(|case| families.insert(discriminant(&case.problem)));
    cases.extend(smallest.into_iter().cloned());
    cases
}
