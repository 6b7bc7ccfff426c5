//! Right: fresh inputs of every kind, outputs poisoned before each run, against the f64 oracle.

use gauntlet_stats::Arm;
use gauntlet_worker::CandidateRecord;

use super::{Examination, Found, Gate, NOT_HERE, edge_cases};
use crate::evidence::{CaseErrors, Evidence, Part, Verdict};
use crate::runner::{ExaminationFailure, Executor, Tried, Workshop, try_case};

/// How often a case with one kind of operands is tried, on fresh ones each time: a kernel that is wrong on half of all
/// operands may be right on those of one draw.
const DRAWS: usize = 4;

/// Bytes of operands up to which a case is tried as often.
const SMALL: u64 = 1 << 20;

/// Compares with the oracle; a maximum error alone never suffices.
pub struct Right;

impl Gate for Right {
    fn name(&self) -> &'static str {
        "right"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        examined(examination)
    }
}

fn examined(examination: &Examination) -> Result<Found, ExaminationFailure> {
    match (examination.recorded(), examination.executor) {
        (Some(Err(found)), _) => Ok(found),
        (Some(Ok(record)), _) => Ok(recorded(record)),
        (None, Executor::Live(workshop)) => live(examination, workshop),
        (None, Executor::Compiled(_)) => Ok(Found::skip(NOT_HERE)),
        (None, Executor::Recorded(_)) => Ok(Found::skip("not recorded")),
    }
}

fn recorded(record: &CandidateRecord) -> Found {
    let Some(correctness) = &record.correctness else {
        return Found::skip("the record says nothing of its correctness");
    };
    let (passed, tests) = (correctness.passed, correctness.tests);
    let reason = format!("recorded: {passed} of {tests} tests passed; {}", correctness.note);
    let reason = reason.trim_end_matches([';', ' ']).to_owned();
    if passed < tests {
        Found::stop(Verdict::Incorrect, reason, Evidence::Reason)
    } else {
        Found::pass(reason, Evidence::Reason)
    }
}

fn live(examination: &Examination, workshop: &Workshop) -> Result<Found, ExaminationFailure> {
    let mut cases = Vec::new();
    for part in examination.candidate.parts(examination.setting) {
        if let Some((verdict, reason)) = try_part(examination, workshop, &part, &mut cases)? {
            return Ok(Found::stop(verdict, reason, Evidence::Correctness { cases }));
        }
    }
    let judged = cases.iter().map(|case| case.errors.judged());
    let [worst, bias] = judged.fold([0.0_f64; 2], |[worst, most], [nrmse, bias]| {
        [worst.max(nrmse), most.max(bias)]
    });
    let reason = format!(
        "{} comparisons, NRMSE at most {worst:.1e}, bias at most {bias:.1e}",
        cases.len()
    );
    Ok(Found::pass(reason, Evidence::Correctness { cases }))
}

/// Tries one schedule; returns the error, if any.
fn try_part(
    examination: &Examination,
    workshop: &Workshop,
    part: &Part,
    cases: &mut Vec<CaseErrors>,
) -> Result<Option<(Verdict, String)>, ExaminationFailure> {
    let (setting, candidate) = (examination.setting, &part.candidate);
    let (mut worker, _) = workshop.start(Arm::Candidate, candidate)?;
    let rules = &setting.rules;
    let mut small = setting.correctness_cases.clone();
    small.extend(edge_cases(&candidate.schedule, &part.timed, &setting.device));
    let mut tried = Vec::new();
    for case in &small {
        if candidate.command.is_none() && !case.sizes.accepts(&candidate.schedule, &setting.device) {
            continue;
        }
        // Operands from a file have no kind, so one run is enough.
        let mut kinds = case.sizes.rules(rules).inputs;
        if case.data.is_some() {
            kinds.truncate(1);
        } else if kinds.len() == 1 && case.sizes.input_bytes() <= SMALL {
            kinds = vec![kinds[0]; DRAWS];
        }
        tried.extend(
            kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| (case, *kind, index == 0)),
        );
    }
    // The timed shapes with the timed inputs; the results of their timed calls are checked during the comparison.
    tried.extend(part.timed.iter().map(|case| (case, case.inputs, false)));
    for trial in tried {
        let (case, kind, _) = trial;
        examination.observer.progress(&format!("{}, {kind}", case.name));
        match try_case(workshop, &mut worker, candidate, trial, rules)? {
            Tried::Refused(reason) => {
                return Ok(Some((
                    Verdict::DoesNotCompile,
                    format!("{}: {reason}", case.name),
                )));
            }
            Tried::Compared(compared) => {
                cases.extend(compared);
                if let Some(fault) = cases.iter().rev().find_map(|case| case.fault.clone()) {
                    let reason = format!("{}, {kind}: {fault}", case.name);
                    return Ok(Some((Verdict::Incorrect, reason)));
                }
            }
        }
    }
    Ok(None)
}
