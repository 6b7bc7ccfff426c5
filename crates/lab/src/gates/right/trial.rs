//! One case tried: operands on disk, what they come to, and what the worker makes of them.

use std::path::Path;

use gauntlet_executor::protocol::{Failure, FailureKind};
use gauntlet_executor::{WorkerError, WorkerProcess};
use gauntlet_problem::{Case, Coverage, ErrorMeasures, Expected, InputKind, Oracle, Output, Problem};

use super::fault::fault;
use crate::candidate::Candidate;
use crate::error::LabError;
use crate::finding::CaseErrors;
use crate::gates::Trouble;
use crate::operands::Operands;
use crate::round::Correctness;
use crate::workshop::Workshop;

/// Copies of two sets of operands, and calls that rotate over them: the last is on the second set, after one on the
/// first, and its copy was called before.
const TIMED_COPIES: usize = 2;
const TIMED_CALLS: usize = 4;

/// A case with fresh operands on disk and what they should come to.
pub struct Prepared<'c> {
    /// The case.
    pub case: &'c Case,
    /// The kind of operands.
    pub kind: InputKind,
    seed: u64,
    expected: Expected,
    operands: Operands,
}

impl<'c> Prepared<'c> {
    /// Makes operands from a fresh seed and has the oracle say what they come to.
    pub fn new(workshop: &Workshop, case: &'c Case, kind: InputKind) -> Result<Self, LabError> {
        let seed = rand::random();
        let (inputs, operands) = Operands::write(workshop, case, kind, seed)?;
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::choose(&case.problem, seed))?;
        Ok(Self {
            case,
            kind,
            seed,
            expected,
            operands,
        })
    }

    /// The operands' file.
    pub fn path(&self) -> &Path {
        self.operands.path()
    }

    /// Compares a result.
    pub fn compare(&self, output: &Output, rules: &Correctness) -> CaseErrors {
        let errors = ErrorMeasures::between(output, &self.expected, rules.tolerance);
        let fault = if self.operands.are_untouched() {
            fault(self.case, self.kind, &errors, rules)
        } else {
            Some("it changed the file of its operands, from which others are to compute too".to_owned())
        };
        CaseErrors {
            case: self.case.name.clone(),
            inputs: self.kind,
            seed: self.seed,
            fault,
            errors,
        }
    }
}

/// What came of a case.
pub enum Tried {
    /// The worker would not build it.
    Refused(String),
    /// It computed.
    Compared(Vec<CaseErrors>),
}

/// Builds and runs a case; where `timed`, also times calls on other operands and looks at the last one's result: a
/// worker that computes when it is looked at need not compute when it is timed.
pub fn try_case(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    candidate: &Candidate,
    (case, kind, timed): (&Case, InputKind, bool),
    rules: &Correctness,
) -> Result<Tried, Trouble> {
    match worker.build(&case.problem, &candidate.schedule) {
        Ok(_) => {}
        Err(WorkerError::Failed(failure)) if failure.kind == FailureKind::Refused => {
            return Ok(Tried::Refused(failure.message));
        }
        Err(error) => return Err(Trouble::Candidate(error)),
    }
    let prepared = Prepared::new(workshop, case, kind)?;
    worker.load(&[prepared.path()], 1).map_err(Trouble::Candidate)?;
    let output = run_once(workshop, worker, &case.problem)?;
    let mut compared = vec![prepared.compare(&output, rules)];
    if timed && compared[0].fault.is_none() {
        let [other, last] = [(); 2].map(|()| Prepared::new(workshop, case, kind));
        let (other, prepared) = (other?, last?);
        let result = worker
            .load(&[other.path(), prepared.path()], TIMED_COPIES)
            .and_then(|_| worker.time(TIMED_CALLS, 0, false))
            .and_then(|_| fetch(workshop, worker, &case.problem));
        let mut timed = prepared.compare(&result.map_err(Trouble::Candidate)?, rules);
        timed.fault = timed
            .fault
            .map(|fault| format!("in calls that were timed: {fault}"));
        compared.push(timed);
    }
    Ok(Tried::Compared(compared))
}

/// Poisons, runs once, and fetches the result.
pub fn run_once(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    problem: &Problem,
) -> Result<Output, Trouble> {
    let result = worker.run(0).and_then(|_| fetch(workshop, worker, problem));
    result.map_err(Trouble::Candidate)
}

/// Fetches the result of the last call.
pub fn fetch(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    problem: &Problem,
) -> Result<Output, WorkerError> {
    let written = worker.folder().join("output");
    worker.output(&written)?;
    // The worker wrote the file, so what is wrong with it is the worker's failure and not the lab's.
    workshop.take_output(&written, problem).map_err(|error| {
        WorkerError::Failed(Failure {
            kind: FailureKind::BadRequest,
            message: format!("its result cannot be used: {error}"),
        })
    })
}
