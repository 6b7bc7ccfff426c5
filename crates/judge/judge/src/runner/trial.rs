//! A trial of one case: operands on disk, the expected result, and the worker's result.

use std::path::Path;

use gauntlet_task::{Case, Expected, InputKind, Inputs, Output, Rules, Sizes, holds, unwritten_between};
use gauntlet_worker::protocol::{Failure, FailureKind, POISON};
use gauntlet_worker::{Call, WorkerError, WorkerProcess, most_calls};
use rand::seq::SliceRandom;

use crate::evidence::{Candidate, CaseErrors, JudgeError};
use crate::runner::failure::ExaminationFailure;
use crate::runner::operands::{Operands, Readers};
use crate::runner::sets;
use crate::runner::workshop::Workshop;

/// The byte that fills outputs of a second run, and where NaN is expected: it makes no float NaN.
const OTHER_POISON: u8 = 0x5A;

/// The byte that fills outputs before a call: NaN, unless NaN is a right result there.
pub fn poison_for(expected: &Expected) -> u8 {
    if expected.has_nan() { OTHER_POISON } else { POISON }
}

/// The copies of two sets of operands on which timed calls compute, in an order that is drawn.
const TIMED: [usize; 4] = [0, 0, 1, 1];

/// A case with fresh operands on disk and the expected result.
pub struct Prepared<'c> {
    /// The case.
    pub case: &'c Case,
    /// The kind of operands.
    pub kind: InputKind,
    seed: u64,
    inputs: Box<dyn Inputs>,
    expected: Expected,
    operands: Operands,
}

impl<'c> Prepared<'c> {
    /// Makes operands from a fresh seed and computes the expected result with the oracle.
    pub fn new(workshop: &Workshop, case: &'c Case, kind: InputKind) -> Result<Self, JudgeError> {
        let seed = rand::random();
        let written = Operands::write(workshop, case, kind, seed)?;
        Self::of(case, kind, seed, written)
    }

    /// The same with the constant inputs of another set.
    fn like(&self, workshop: &Workshop, readers: Readers) -> Result<Self, JudgeError> {
        let seed = rand::random();
        let drawn = (self.kind, seed);
        let written = Operands::write_like(workshop, self.case, drawn, &self.operands, readers)?;
        Self::of(self.case, self.kind, seed, written)
    }

    fn of(
        case: &'c Case,
        kind: InputKind,
        seed: u64,
        (inputs, operands): (Box<dyn Inputs>, Operands),
    ) -> Result<Self, JudgeError> {
        let expected = case
            .sizes
            .expected(&*inputs, case.sizes.coverage(seed))
            .map_err(JudgeError::Inputs)?;
        Ok(Self {
            case,
            kind,
            seed,
            inputs,
            expected,
            operands,
        })
    }

    /// The operands' file.
    pub fn path(&self) -> &Path {
        self.operands.path()
    }

    /// Compares a result.
    fn compare(&self, output: &Output, rules: &Rules) -> CaseErrors {
        let rules = self.case.sizes.rules(rules);
        let kind = self.case.data.is_none().then_some(self.kind);
        let result = (&*self.inputs, output);
        let (errors, fault) = self.case.sizes.examine(&rules, kind, result, &self.expected);
        let fault = if self.operands.are_untouched() {
            fault
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

    /// Runs once on these operands, which are loaded, and compares the result. Elements that hold the byte with which outputs
    /// were filled may be results: a second run with another byte tells those that were never written.
    pub fn run(
        &self,
        workshop: &Workshop,
        worker: &mut WorkerProcess,
        rules: &Rules,
    ) -> Result<CaseErrors, ExaminationFailure> {
        let sizes = &self.case.sizes;
        let poison = poison_for(&self.expected);
        let output = run_poisoned(workshop, worker, sizes, poison)?;
        let mut compared = self.compare(&output, rules);
        if holds(&output, poison) {
            let other = if poison == POISON { OTHER_POISON } else { POISON };
            let again = run_poisoned(workshop, worker, sizes, other)?;
            let unwritten = unwritten_between(&output, &again, [poison, other]);
            compared.fault = unwritten.or(compared.fault);
        }
        Ok(compared)
    }
}

/// The outcome for a case.
pub enum Tried {
    /// The worker refused to build it.
    Refused(String),
    /// It computed a result.
    Compared(Vec<CaseErrors>),
}

/// Builds and runs a case. If `timed`, also times calls on other operands and checks the last one's result: a worker
/// that computes correctly when checked may not compute at all when timed.
pub fn try_case(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    candidate: &Candidate,
    (case, kind, timed): (&Case, InputKind, bool),
    rules: &Rules,
) -> Result<Tried, ExaminationFailure> {
    match worker.build(&case.sizes, &candidate.schedule) {
        Ok(_) => {}
        Err(WorkerError::Failed(failure)) if failure.kind == FailureKind::Refused => {
            return Ok(Tried::Refused(failure.message));
        }
        Err(error) => return Err(ExaminationFailure::Candidate(error)),
    }
    let prepared = Prepared::new(workshop, case, kind)?;
    worker
        .load(&[prepared.path()], 1)
        .and_then(|_| worker.prepare())
        .map_err(ExaminationFailure::Candidate)?;
    let mut compared = vec![prepared.run(workshop, worker, rules)?];
    if timed && compared[0].fault.is_none() {
        let readers = sets::readers(worker.is_held());
        let known = Prepared::new(workshop, case, kind)?;
        let fresh = known.like(workshop, readers)?;
        let mut calls = TIMED.to_vec();
        calls.shuffle(&mut rand::rng());
        calls.truncate(most_calls(&case.sizes));
        sets::load(worker, &known.operands, &[&fresh.operands], 2)
            .and_then(|_| worker.prepare())
            .map_err(ExaminationFailure::Candidate)?;
        // The result of any call may be asked for; one of each set is, in an order that the worker cannot know.
        let mut drawn: Vec<usize> = (0..calls.len()).collect();
        drawn.shuffle(&mut rand::rng());
        let of = |copy: usize| drawn.iter().copied().find(|call| calls[*call] == copy);
        let drawn: Vec<usize> = [of(0), of(1)].into_iter().flatten().collect();
        for (call, output) in timed_results(workshop, worker, [&known, &fresh], &calls, &drawn)? {
            let mut timed = [&known, &fresh][calls[call]].compare(&output, rules);
            timed.fault = timed
                .fault
                .map(|fault| format!("in calls that were timed: {fault}"));
            compared.push(timed);
        }
    }
    Ok(Tried::Compared(compared))
}

/// Poisons the result, runs once, and fetches the result.
pub fn run_once(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    sizes: &Sizes,
) -> Result<Output, ExaminationFailure> {
    run_poisoned(workshop, worker, sizes, POISON)
}

fn run_poisoned(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    sizes: &Sizes,
    poison: u8,
) -> Result<Output, ExaminationFailure> {
    if worker.is_held() {
        let call = Call {
            copy: 0,
            set: 0,
            operands: &[],
            is_drawn: true,
            heat: None,
        };
        let stepped = worker.step(&[call], &sizes.outputs(), poison);
        let stepped = stepped.map_err(ExaminationFailure::Candidate)?;
        return Ok(Output(stepped.results.into_iter().flatten().collect()));
    }
    let result = worker
        .run_poisoned(0, poison)
        .and_then(|_| fetch(workshop, worker, sizes, 0));
    result.map_err(ExaminationFailure::Candidate)
}

/// Times calls on copies of two sets, and returns the results of the drawn ones, with their numbers.
fn timed_results(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    sets: [&Prepared; 2],
    copies: &[usize],
    drawn: &[usize],
) -> Result<Vec<(usize, Output)>, ExaminationFailure> {
    let sizes = &sets[0].case.sizes;
    if !worker.is_held() {
        worker
            .time(copies, false)
            .map_err(ExaminationFailure::Candidate)?;
        let taken = drawn
            .iter()
            .map(|call| Ok((*call, fetch(workshop, worker, sizes, *call)?)));
        return taken
            .collect::<Result<_, _>>()
            .map_err(ExaminationFailure::Candidate);
    }
    let mut written = Vec::new();
    for set in sets {
        written.push(sets::changing(sizes, &set.operands)?);
    }
    let call = |(call, copy): (usize, &usize)| Call {
        copy: *copy,
        set: *copy,
        operands: &written[*copy],
        is_drawn: drawn.contains(&call),
        heat: None,
    };
    let calls: Vec<Call> = copies.iter().enumerate().map(call).collect();
    let stepped = worker
        .step(&calls, &sizes.outputs(), poison_for(&sets[0].expected))
        .map_err(ExaminationFailure::Candidate)?;
    let numbers = (0..copies.len()).filter(|call| drawn.contains(call));
    Ok(numbers.zip(stepped.results.into_iter().map(Output)).collect())
}

/// Lets a worker that is not held write the result of a call of the last request, and reads it.
pub fn fetch(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    sizes: &Sizes,
    index: usize,
) -> Result<Output, WorkerError> {
    let written = worker.folder().join("output");
    worker.output(&written, index)?;
    // The worker wrote the file, so an invalid file is the worker's failure and not the judge's.
    workshop.take_output(&written, sizes).map_err(|error| {
        WorkerError::Failed(Failure {
            kind: FailureKind::BadRequest,
            message: format!("its result cannot be used: {error}"),
        })
    })
}
