//! Checks of results that are asked for after timed calls.

use std::ops::Range;
use std::rc::Rc;

use gauntlet_stats::Arm;
use gauntlet_task::{Case, Coverage, ErrorMeasures, Expected, Inputs, Output, Rules, Sizes, nrmse_between};
use gauntlet_worker::Operand;
use gauntlet_worker::protocol::POISON;

use super::side::{Purpose, Side};
use crate::evidence::JudgeError;
use crate::runner::{ExaminationFailure, Operands, Workshop, fetch, poison_for, sets};

/// Two correct results may differ by twice the error limit of one.
const TWO_ERRORS: f64 = 2.0;

/// A set of operands: the file, and its contents where memory allows.
pub struct OperandSet {
    /// The file that workers read.
    pub operands: Operands,
    /// Its contents; none if they are read again when they are needed.
    pub inputs: Option<Box<dyn Inputs>>,
}

/// Checks results of a case against the oracle, and the two sides' results against each other.
pub struct Checker<'a> {
    workshop: &'a Workshop,
    case: &'a Case,
    rules: Rules,
    sets: Vec<&'a OperandSet>,
    /// What was done with the calls whose results are checked.
    done: &'static str,
    /// A part of each set's result, once it has been needed.
    expected: Vec<Option<Expected>>,
    /// What is written into the memory of held workers, of sets that fit this program's.
    written: Vec<Option<Rc<Vec<Operand>>>>,
}

impl<'a> Checker<'a> {
    /// A checker of results on these sets of operands.
    pub fn new(workshop: &'a Workshop, rules: &Rules, case: &'a Case, sets: Vec<&'a OperandSet>) -> Self {
        Self {
            workshop,
            case,
            rules: case.sizes.rules(rules),
            expected: sets.iter().map(|_| None).collect(),
            written: sets.iter().map(|_| None).collect(),
            sets,
            done: "timed",
        }
    }

    /// A checker of results of calls that were traced.
    pub fn of_traced(workshop: &'a Workshop, rules: &Rules, case: &'a Case, set: &'a OperandSet) -> Self {
        Self {
            done: "traced",
            ..Self::new(workshop, rules, case, vec![set])
        }
    }

    /// The sizes of the case.
    pub fn sizes(&self) -> &'a Sizes {
        &self.case.sizes
    }

    /// What is written into a held worker's memory before it computes on this set.
    pub fn written(&mut self, set: usize) -> Result<Rc<Vec<Operand>>, JudgeError> {
        if let Some(written) = &self.written[set] {
            return Ok(Rc::clone(written));
        }
        let OperandSet { operands, inputs } = self.sets[set];
        let written = Rc::new(sets::changing(&self.case.sizes, operands)?);
        if inputs.is_some() {
            self.written[set] = Some(Rc::clone(&written));
        }
        Ok(written)
    }

    /// Asks a side for the result of a call of its last request, which computed on this set, and [checks](Self::check) it.
    /// Also returns the seconds that asking took.
    pub fn take(
        &mut self,
        side: &mut Side,
        call: usize,
        set: usize,
    ) -> Result<(Output, f64), ExaminationFailure> {
        let (workshop, sizes) = (self.workshop, &self.case.sizes);
        let (output, effort) = side.ask(Purpose::Result, 1, |worker| fetch(workshop, worker, sizes, call))?;
        self.check(side.arm, set, &output)?;
        Ok((output, effort.exchange))
    }

    /// Checks elements of a side's result on a set, which are drawn at random, against the oracle.
    pub fn check(&mut self, arm: Arm, set: usize, output: &Output) -> Result<(), ExaminationFailure> {
        match self.fault(set, output)? {
            None => Ok(()),
            Some(fault) => Err(self.wrong(arm, &fault)),
        }
    }

    fn fault(&mut self, set: usize, output: &Output) -> Result<Option<String>, ExaminationFailure> {
        let OperandSet { operands, inputs } = self.sets[set];
        let sizes = &self.case.sizes;
        let read;
        let inputs = match inputs {
            Some(inputs) => &**inputs,
            None if operands.are_untouched() => {
                read = sizes.load(operands.path()).map_err(JudgeError::Inputs)?;
                &*read
            }
            None => return Err(self.touched()),
        };
        let expected = match self.expected[set].take() {
            Some(expected) => expected,
            None => {
                let spot = sizes.spot(rand::random());
                sizes.expected(inputs, spot).map_err(JudgeError::Inputs)?
            }
        };
        let kind = self.case.data.is_none().then_some(self.case.inputs);
        let (_, fault) = sizes.examine(&self.rules, kind, (inputs, output), &expected);
        self.expected[set] = Some(expected);
        Ok(fault)
    }

    /// The byte that fills outputs before a call, as far as results are known.
    pub fn poison(&self) -> u8 {
        let mut known = self.expected.iter().flatten().map(poison_for);
        known.find(|poison| *poison != POISON).unwrap_or(POISON)
    }

    /// Compares all elements of the two sides' results of the same call, so that a candidate gains nothing by guessing
    /// which elements the oracle is asked for. Outputs with limits of their own are compared one by one.
    pub fn compare(&self, baseline: &Output, candidate: &Output) -> Result<(), ExaminationFailure> {
        let known = self.expected.iter().flatten().next();
        if known.is_some_and(|expected| expected.coverage == Coverage::Full) {
            // The whole result of either side was compared with the oracle.
            return Ok(());
        }
        for (of, nrmse, outputs) in self.allowed(known) {
            let limit = TWO_ERRORS * nrmse;
            let found = nrmse_between(&candidate.0[outputs.clone()], &baseline.0[outputs]);
            if found > limit {
                let errors = ErrorMeasures::between(candidate, &Expected::of(baseline), self.rules.tolerance);
                let fault = format!(
                    "it is not the baseline's result: NRMSE{of} {found:.2e} is over {limit:.2e}; {errors}"
                );
                return Err(self.wrong(Arm::Candidate, &fault));
            }
        }
        Ok(())
    }

    /// The allowed NRMSE of each output with limits of its own, or of all together, and which outputs these are.
    fn allowed(&self, known: Option<&Expected>) -> Vec<(String, f64, Range<usize>)> {
        let parts = known.into_iter().flat_map(|expected| &expected.parts);
        let own = parts.enumerate().filter_map(|(output, part)| {
            let nrmse = part.limits?.nrmse;
            Some((format!(" of `{}`", part.name), nrmse, output..output + 1))
        });
        let own: Vec<_> = own.collect();
        if own.is_empty() {
            return vec![(
                String::new(),
                self.rules.nrmse,
                0..self.case.sizes.outputs().len(),
            )];
        }
        own
    }

    /// Fails if a worker has changed a file of operands.
    pub fn files_are_untouched(&self) -> Result<(), ExaminationFailure> {
        use rayon::prelude::*;
        let untouched = self.sets.par_iter().all(|set| set.operands.are_untouched());
        if untouched { Ok(()) } else { Err(self.touched()) }
    }

    fn touched(&self) -> ExaminationFailure {
        self.wrong(Arm::Candidate, "the file of operands is not as it was written")
    }

    fn wrong(&self, arm: Arm, fault: &str) -> ExaminationFailure {
        let reason = format!("{}, in calls that were {}: {fault}", self.case.name, self.done);
        match arm {
            Arm::Baseline => ExaminationFailure::Void(format!("the baseline is wrong: {reason}")),
            Arm::Candidate => ExaminationFailure::Wrong(reason),
        }
    }
}
