//! Right: fresh inputs of every kind, outputs poisoned with NaN before each run, against the f64 oracle.

use std::path::PathBuf;

use gauntlet_executor::protocol::{Failure, FailureKind};
use gauntlet_executor::{CandidateRecord, WorkerError, WorkerProcess};
use gauntlet_problem::{
    Attention, Case, Coverage, ErrorMeasures, Expected, Form, GemmShape, GroupedGemm, InputKind, Oracle,
    Output, Problem, Sequence,
};
use gauntlet_schedule::{Schedule, check};

use super::{Examination, Executor, Found, Gate, Trouble};
use crate::candidate::Candidate;
use crate::error::LabError;
use crate::finding::{CaseErrors, Evidence};
use crate::round::Correctness;
use crate::verdict::Verdict;
use crate::workshop::Workshop;

/// Compares with the oracle; a maximum error alone is never enough.
pub struct Right;

impl Gate for Right {
    fn name(&self) -> &'static str {
        "right"
    }

    fn examine(&self, examination: &Examination) -> Result<Found, Trouble> {
        match (examination.recorded(), examination.executor) {
            (Some(Err(found)), _) => Ok(found),
            (Some(Ok(record)), _) => Ok(recorded(record)),
            (None, Executor::Live(workshop)) => live(examination, workshop),
            (None, Executor::Recorded(_)) => Ok(Found::skip("not recorded")),
        }
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

fn live(examination: &Examination, workshop: &Workshop) -> Result<Found, Trouble> {
    let (round, candidate) = (examination.round, examination.candidate);
    let (mut worker, _) = workshop.start(candidate).map_err(Trouble::Candidate)?;
    let rules = &round.file().correctness;
    let mut small = round.correctness_cases.clone();
    small.extend(cases_for(&candidate.schedule, round.benchmark_cases.first()));
    let mut tried = Vec::new();
    for case in &small {
        if candidate.command.is_none() && !check(&candidate.schedule, &case.problem, &round.device).is_empty()
        {
            continue;
        }
        // Operands that come from a file are of no kind, so once is enough.
        let kinds = if case.data.is_some() {
            &rules.inputs[..rules.inputs.len().min(1)]
        } else {
            &rules.inputs
        };
        tried.extend(kinds.iter().map(|kind| (case, *kind)));
    }
    // The shapes that are timed, with the inputs that are timed.
    tried.extend(round.benchmark_cases.iter().map(|case| (case, case.inputs)));
    let mut cases = Vec::new();
    for (case, kind) in tried {
        examination.observer.progress(&format!("{}, {kind}", case.name));
        match try_case(workshop, &mut worker, candidate, case, kind, rules)? {
            Tried::Refused(reason) => {
                return Ok(Found::stop(
                    Verdict::DoesNotCompile,
                    format!("{}: {reason}", case.name),
                    Evidence::Correctness { cases },
                ));
            }
            Tried::Compared(compared) => {
                let fault = compared.fault.clone();
                cases.push(*compared);
                if let Some(fault) = fault {
                    let reason = format!("{}, {kind}: {fault}", case.name);
                    return Ok(Found::stop(
                        Verdict::Incorrect,
                        reason,
                        Evidence::Correctness { cases },
                    ));
                }
            }
        }
    }
    let worst = cases.iter().map(|case| case.errors.nrmse).fold(0.0, f64::max);
    let bias = cases
        .iter()
        .map(|case| case.errors.mean_signed.abs())
        .fold(0.0, f64::max);
    let reason = format!(
        "{} comparisons, NRMSE at most {worst:.1e}, bias at most {bias:.1e}",
        cases.len()
    );
    Ok(Found::pass(reason, Evidence::Correctness { cases }))
}

/// A case with fresh operands on disk and what they should come to.
pub struct Prepared<'c> {
    /// The case.
    pub case: &'c Case,
    /// The kind of operands.
    pub kind: InputKind,
    seed: u64,
    expected: Expected,
    /// The operands' file.
    pub path: PathBuf,
}

impl<'c> Prepared<'c> {
    /// Makes operands from a fresh seed and has the oracle say what they come to.
    pub fn new(workshop: &Workshop, case: &'c Case, kind: InputKind) -> Result<Self, LabError> {
        let seed = rand::random();
        let (inputs, path) = workshop.write_inputs(case, kind, seed)?;
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::choose(&case.problem))?;
        Ok(Self {
            case,
            kind,
            seed,
            expected,
            path,
        })
    }

    /// Compares a result.
    pub fn compare(&self, output: &Output, rules: &Correctness) -> CaseErrors {
        let errors = ErrorMeasures::between(output, &self.expected, rules.tolerance);
        CaseErrors {
            case: self.case.name.clone(),
            inputs: self.kind,
            seed: self.seed,
            fault: fault(self.case, self.kind, &errors, rules),
            errors,
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // What is left goes with the workshop's folder.
        let _removed = std::fs::remove_file(&self.path);
    }
}

/// How many standard deviations a bias may lie from none by chance.
const CHANCE_DEVIATIONS: f64 = 5.0;

enum Tried {
    Refused(String),
    Compared(Box<CaseErrors>),
}

fn try_case(
    workshop: &Workshop,
    worker: &mut WorkerProcess,
    candidate: &Candidate,
    case: &Case,
    kind: InputKind,
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
    worker.load(&prepared.path, 1).map_err(Trouble::Candidate)?;
    let output = run_once(workshop, worker, &case.problem)?;
    Ok(Tried::Compared(Box::new(prepared.compare(&output, rules))))
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
    let written = workshop.path(&format!("{}.output", worker.id()));
    worker.output(&written)?;
    // The worker wrote the file, so what is wrong with it is the worker's failure and not the lab's.
    workshop.take_output(&written, problem).map_err(|error| {
        WorkerError::Failed(Failure {
            kind: FailureKind::BadRequest,
            message: format!("its result cannot be used: {error}"),
        })
    })
}

/// What is wrong with a result, worst first.
pub fn fault(case: &Case, kind: InputKind, errors: &ErrorMeasures, rules: &Correctness) -> Option<String> {
    let exact = kind == InputKind::Competition
        && case.data.is_none()
        && matches!(
            &case.problem,
            Problem::GroupedGemm(GroupedGemm {
                form: Form::Plain,
                ..
            })
        );
    if errors.unwritten > 0 {
        return Some(format!(
            "{} elements are NaN or were never written",
            errors.unwritten
        ));
    }
    if exact && errors.unequal > 0 {
        return Some(format!(
            "{} elements differ from the oracle, though every order of summation is exact on these values; {}",
            errors.unequal, errors
        ));
    }
    if errors.nrmse > rules.nrmse {
        return Some(format!(
            "NRMSE {:.2e} is over {:.2e}; {errors}",
            errors.nrmse, rules.nrmse
        ));
    }
    // Rounding to nearest errs either way with even odds, so over n elements the mean strays by NRMSE/√n; five times
    // that comes once in a hundred thousand comparisons (Hoeffding's bound), and on few elements is over the limit.
    let chance = CHANCE_DEVIATIONS * errors.nrmse / (errors.compared.max(1) as f64).sqrt();
    if errors.mean_signed.abs() > rules.bias.max(chance) {
        return Some(format!(
            "bias {:+.2e} is over ±{:.2e}; {errors}",
            errors.mean_signed,
            rules.bias.max(chance)
        ));
    }
    if errors.mismatches > 0 {
        return Some(format!(
            "{} elements are outside the tolerance; {errors}",
            errors.mismatches
        ));
    }
    None
}

/// Cases that the suite cannot know it needs: at least stages + 2 steps deep, so that a pipeline wraps around, with
/// tails on every side; and the smallest.
pub fn cases_for(schedule: &Schedule, like: Option<&Case>) -> Vec<Case> {
    let Some(like) = like else { return Vec::new() };
    let deep = schedule.stages + 2;
    let case = |name: &str, problem| Case {
        name: name.to_owned(),
        problem,
        // Operands from a file fit the problem that they were made for, and no other.
        data: None,
        ..like.clone()
    };
    match &like.problem {
        Problem::GroupedGemm(gemm) => {
            let k = (deep * schedule.tile.k * schedule.split_k).next_multiple_of(16) + 16;
            let shapes = |shapes: &[(usize, usize, usize)]| {
                let groups = shapes.iter().map(|&(m, n, k)| GemmShape { m, n, k }).collect();
                Problem::GroupedGemm(GroupedGemm {
                    groups,
                    ..gemm.clone()
                })
            };
            vec![
                case(
                    "deep, with tails",
                    shapes(&[(schedule.tile.m + 1, schedule.tile.n + 1, k), (3, 7, 16)]),
                ),
                case("smallest", shapes(&[(1, 1, 16), (0, 5, 32), (1, 2, 48)])),
            ]
        }
        Problem::Attention(attention) => {
            let keys = deep * schedule.tile.n * schedule.split_k + 1;
            let sequences = |sequences: &[(usize, usize)]| {
                let sequences = sequences
                    .iter()
                    .map(|&(queries, keys)| Sequence { queries, keys })
                    .collect();
                Problem::Attention(Attention {
                    sequences,
                    ..attention.clone()
                })
            };
            vec![
                case("deep, with tails", sequences(&[(schedule.tile.m + 1, keys)])),
                case("smallest", sequences(&[(1, 1), (2, 3)])),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_problem::{Inputs, OutputFormat};

    use super::*;

    fn case(form: Form) -> Case {
        let groups = vec![GemmShape { m: 96, n: 128, k: 64 }];
        let output = OutputFormat::F32;
        Case {
            name: "test".to_owned(),
            problem: Problem::GroupedGemm(GroupedGemm { groups, form, output }),
            inputs: InputKind::Wide,
            data: None,
            speed_of_light: None,
        }
    }

    /// What the gate says of the oracle's own result after `tamper` has changed each element by its index.
    fn said(kind: InputKind, tamper: impl Fn(usize, f64) -> f64) -> Option<String> {
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, kind, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let mut output = Output::poisoned(&case.problem);
        for (index, value) in expected.values() {
            output.set(index, tamper(index, value));
        }
        let rules = Correctness::default();
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        fault(&case, kind, &errors, &rules)
    }

    #[test]
    fn the_right_result_passes() {
        for kind in InputKind::ALL {
            assert_eq!(said(kind, |_, value| value), None);
        }
    }

    #[test]
    fn an_element_never_written_is_told() {
        let fault = said(
            InputKind::Wide,
            |index, value| if index == 5 { f64::NAN } else { value },
        );
        assert!(
            fault
                .unwrap()
                .starts_with("1 elements are NaN or were never written")
        );
    }

    #[test]
    fn the_last_bit_counts_where_every_order_of_summation_is_exact() {
        let fault = said(InputKind::Competition, |index, value| {
            if index == 5 { value + 0.25 } else { value }
        });
        assert!(fault.unwrap().starts_with("1 elements differ from the oracle"));
    }

    #[test]
    fn errors_of_either_sign_everywhere_are_told_by_their_mean_square() {
        let fault = said(InputKind::Wide, |index, value| {
            value * if index % 2 == 0 { 1.0009 } else { 0.9991 }
        });
        assert!(fault.unwrap().starts_with("NRMSE"));
    }

    #[test]
    fn a_bias_within_every_tolerance_is_told() {
        // 3e-4 of the root mean square, always upward: under the limits on NRMSE, as a biased quantiser would be.
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let squares: f64 = expected.values().map(|(_, value)| value * value).sum();
        let shift = 3e-4 * (squares / expected.values().count() as f64).sqrt();
        assert!(
            said(InputKind::Wide, |_, value| value + shift)
                .unwrap()
                .starts_with("bias +3.00e-4")
        );
        // The same size of error with even odds of either sign is no bias.
        let even = |index: usize, value: f64| {
            if index.is_multiple_of(2) {
                value + shift
            } else {
                value - shift
            }
        };
        assert!(!said(InputKind::Wide, even).is_some_and(|fault| fault.starts_with("bias")));
    }

    #[test]
    fn one_element_far_off_is_told_though_the_mean_square_is_small() {
        let case = case(Form::Plain);
        let inputs = Inputs::generate(&case.problem, InputKind::Wide, 7);
        let expected = Oracle::compute(&case.problem, &inputs, Coverage::Full).unwrap();
        let rules = Correctness::default();
        // The element nearest to zero has the least tolerance in proportion to the rest.
        let (least, value) = expected
            .values()
            .min_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))
            .unwrap();
        let off = value + 3.0 * (rules.tolerance.absolute + rules.tolerance.relative * value.abs());
        let fault = said(
            InputKind::Wide,
            |index, value| if index == least { off } else { value },
        );
        assert!(fault.unwrap().contains("1 elements are outside the tolerance"));
    }
}
