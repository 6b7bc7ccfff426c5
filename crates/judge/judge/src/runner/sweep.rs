//! Every case of a suite under many schedules on several workers, each against the oracle.

use gauntlet_parameters::Parameters;
use gauntlet_task::{Case, InputKind, Rules, Suite};
use gauntlet_worker::protocol::FailureKind;
use gauntlet_worker::{Limits, Timeouts, WorkerCommand, WorkerError, WorkerProcess};
use schemars::JsonSchema;
use serde::Serialize;

use crate::evidence::{CaseErrors, JudgeError};
use crate::runner::failure::ExaminationFailure;
use crate::runner::trial::Prepared;
use crate::runner::workshop::Workshop;

/// The inputs of a sweep.
pub struct Sweep<'a> {
    /// The cases, correctness and benchmark alike.
    pub suite: &'a Suite,
    /// Workers by label, such as the SIMD path that each is restricted to.
    pub workers: Vec<(String, WorkerCommand)>,
    /// The schedules for a case.
    pub schedules: &'a dyn Fn(&Case) -> Vec<Parameters>,
    /// The rules for a correct result.
    pub rules: Rules,
    /// Timeouts for workers.
    pub timeouts: Timeouts,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepReport {
    /// The suite.
    pub suite: String,
    /// What is special about the task, or was noticed of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Comparisons with the oracle.
    pub compared: usize,
    /// Correct results among them.
    pub right: usize,
    /// Builds that the worker refused.
    pub refused: usize,
    /// Schedules without a comparison because of the machine: it lacked memory, a file or a device, or a first call took too long.
    pub blocked: usize,
    /// Schedules without a comparison for any other reason: the worker died, or gave no result.
    pub failed: usize,
    /// The largest normalised root-mean-square error.
    #[serde(with = "gauntlet_task::number")]
    #[schemars(with = "gauntlet_task::number::Written")]
    pub worst_nrmse: f64,
    /// The largest mean signed error.
    #[serde(with = "gauntlet_task::number")]
    #[schemars(with = "gauntlet_task::number::Written")]
    pub worst_bias: f64,
    /// Details by case, kind of input and worker.
    pub points: Vec<SweepPoint>,
}

/// One case, kind of input and worker, over its schedules.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SweepPoint {
    /// The case.
    pub case: String,
    /// The kind of input.
    pub inputs: InputKind,
    /// The worker's label.
    pub worker: String,
    /// Schedules compared.
    pub compared: usize,
    /// Elements that the oracle computed for each schedule.
    pub elements: usize,
    /// The largest normalised root-mean-square error.
    #[serde(with = "gauntlet_task::number")]
    #[schemars(with = "gauntlet_task::number::Written")]
    pub worst_nrmse: f64,
    /// Errors, by schedule.
    pub faults: Vec<Fault>,
}

/// A schedule that was refused or wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Fault {
    /// The schedule in words.
    pub schedule: String,
    /// The error.
    pub what: String,
    /// The seed of its inputs.
    pub seed: Option<u64>,
    /// Whether the machine is at fault, and not the schedule.
    pub blocked: bool,
}

impl SweepReport {
    /// Whether at least one result was compared, and nothing was wrong, refused or left without a result.
    pub fn is_sound(&self) -> bool {
        self.compared > 0 && self.is_unspoilt() && self.blocked == 0
    }

    /// Whether the machine kept some from being compared, and nothing was wrong, refused or failed.
    pub fn is_blocked(&self) -> bool {
        self.blocked > 0 && self.is_unspoilt()
    }

    fn is_unspoilt(&self) -> bool {
        self.right == self.compared && self.refused == 0 && self.failed == 0
    }
}

/// Runs a sweep; `progress` receives a description of each step.
pub fn sweep(sweep: &Sweep, progress: &dyn Fn(&str)) -> Result<SweepReport, JudgeError> {
    let mut report = SweepReport {
        suite: sweep.suite.name.clone(),
        ..SweepReport::default()
    };
    let open = |command: &WorkerCommand| Workshop::new(command.clone(), sweep.timeouts, Limits::default());
    let workers: Vec<(&str, Workshop)> = sweep
        .workers
        .iter()
        .map(|(label, command)| Ok((label.as_str(), open(command)?)))
        .collect::<Result<_, JudgeError>>()?;
    let Some((_, first)) = workers.first() else {
        return Ok(report);
    };
    for case in sweep.suite.correctness.iter().chain(&sweep.suite.benchmark) {
        let schedules = (sweep.schedules)(case);
        for kind in case.sizes.rules(&sweep.rules).inputs {
            let prepared = Prepared::new(first, case, kind)?;
            for (label, workshop) in &workers {
                progress(&format!(
                    "{}, {kind}, {label}, {} schedules",
                    case.name,
                    schedules.len()
                ));
                let point = examine(workshop, &prepared, label, &schedules, &sweep.rules, &mut report)?;
                report.points.push(point);
            }
        }
    }
    report.notes.clone_from(&sweep.suite.notes);
    report.notes.extend(sweep.suite.remarks());
    Ok(report)
}

fn examine(
    workshop: &Workshop,
    prepared: &Prepared,
    label: &str,
    schedules: &[Parameters],
    rules: &Rules,
    report: &mut SweepReport,
) -> Result<SweepPoint, JudgeError> {
    let mut point = SweepPoint {
        case: prepared.case.name.clone(),
        inputs: prepared.kind,
        worker: label.to_owned(),
        compared: 0,
        elements: 0,
        worst_nrmse: 0.0,
        faults: Vec::new(),
    };
    let mut worker = None;
    for schedule in schedules {
        let fault = |what, seed| Fault {
            schedule: prepared.case.sizes.task().parameters().describe(schedule),
            what,
            seed,
            blocked: false,
        };
        match try_schedule(workshop, &mut worker, prepared, schedule, rules) {
            Ok(compared) => {
                point.compared += 1;
                point.elements = compared.errors.compared;
                let [nrmse, bias] = compared.errors.judged();
                point.worst_nrmse = point.worst_nrmse.max(nrmse);
                report.worst_nrmse = report.worst_nrmse.max(nrmse);
                report.worst_bias = report.worst_bias.max(bias);
                match compared.fault {
                    None => report.right += 1,
                    Some(what) => point.faults.push(fault(what, Some(compared.seed))),
                }
            }
            Err(ExaminationFailure::Judge(error)) => return Err(error),
            Err(ExaminationFailure::Void(what) | ExaminationFailure::Wrong(what)) => {
                report.failed += 1;
                point.faults.push(fault(what, None));
            }
            Err(ExaminationFailure::Candidate(error) | ExaminationFailure::Baseline(error)) => {
                let refused =
                    matches!(&error, WorkerError::Failed(failure) if failure.kind == FailureKind::Refused);
                let count = match refused {
                    true => &mut report.refused,
                    false if error.is_of_the_machine() => &mut report.blocked,
                    false => &mut report.failed,
                };
                *count += 1;
                if error.is_death() {
                    worker = None;
                }
                point.faults.push(Fault {
                    blocked: error.is_of_the_machine(),
                    ..fault(error.to_string(), None)
                });
            }
        }
    }
    report.compared += point.compared;
    Ok(point)
}

/// Operands are loaded once for each worker: a build for the same problem keeps them.
fn try_schedule(
    workshop: &Workshop,
    worker: &mut Option<WorkerProcess>,
    prepared: &Prepared,
    schedule: &Parameters,
    rules: &Rules,
) -> Result<CaseErrors, ExaminationFailure> {
    let problem = &prepared.case.sizes;
    let worker = match worker {
        Some(worker) => {
            worker
                .build(problem, schedule)
                .map_err(ExaminationFailure::Candidate)?;
            worker
        }
        None => {
            let (mut started, _) = workshop.start_default().map_err(JudgeError::Executor)?;
            started
                .build(problem, schedule)
                .map_err(ExaminationFailure::Candidate)?;
            started
                .load(&[prepared.path()], 1)
                .and_then(|_| started.prepare())
                .map_err(ExaminationFailure::Candidate)?;
            worker.insert(started)
        }
    };
    prepared.run(workshop, worker, rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_sound_only_if_all_was_compared_and_right() {
        let sound = SweepReport {
            compared: 3,
            right: 3,
            ..SweepReport::default()
        };
        assert!(sound.is_sound());
        for fault in [
            |report: &mut SweepReport| report.right = 2,
            |report: &mut SweepReport| report.refused = 1,
            |report: &mut SweepReport| report.failed = 1,
        ] {
            let mut report = sound.clone();
            fault(&mut report);
            assert!(!report.is_sound(), "{report:?}");
        }
        assert!(!SweepReport::default().is_sound(), "nothing was compared");
        let blocked = SweepReport { blocked: 1, ..sound };
        assert!(blocked.is_blocked() && !blocked.is_sound());
        let wrong = SweepReport { right: 2, ..blocked };
        assert!(!wrong.is_blocked() && !wrong.is_sound());
    }
}
