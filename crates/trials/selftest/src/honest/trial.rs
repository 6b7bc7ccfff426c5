//! The trial of an honest worker: a comparison with its own twin, after the examination whether it is right.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use gauntlet_device::Device;
use gauntlet_judge::{
    Candidate, Comparison, Executor, JudgeError, Judgement, Measurement, Session, Setting, Verdict, Workshop,
};
use gauntlet_parameters::Parameters;
use gauntlet_scratch::Scratch;
use gauntlet_stats::{Criteria, Interval};
use gauntlet_task::{Suite, SuiteError};
use gauntlet_worker::{Limits, Program, Timeouts, WorkerCommand};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::{Habit, Resident, residents};
use crate::cheats;

/// The settings of a trial of the zoo.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that serves the workers, `gauntlet-selftest`.
    pub program: Program,
    /// Only workers of these names; all of them if none are named.
    pub names: Vec<String>,
    /// How often each is compared with itself.
    pub runs: usize,
}

/// The outcome of one comparison.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResidentReport {
    /// Its name.
    pub name: &'static str,
    /// What is odd about it.
    pub story: &'static str,
    /// Which of its runs, counted from 1.
    pub run: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// The verdict; none if it was left out.
    pub verdict: Option<Verdict>,
    /// The reason given.
    pub reason: String,
    /// The log speed-up over its twin, which is truly 0.
    pub interval: Option<Interval>,
    /// Pairs of processes measured.
    pub pairs: usize,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// How a comparison with a twin ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Measured, and no difference was claimed.
    Measured,
    /// No verdict, without an accusation: the machine was too busy.
    Unjudged,
    /// Called slightly faster or slower than its twin: the error that the criteria allow in a hundredth of comparisons.
    Misjudged,
    /// Adopted over its twin.
    Adopted,
    /// Stopped as if it had cheated.
    Accused,
    /// Left out: this machine lacks what it needs.
    LeftOut,
}

impl Outcome {
    /// Whether no honest worker may ever end like this.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Adopted | Self::Accused)
    }

    fn of(verdict: Verdict, accused: bool) -> Self {
        match verdict {
            Verdict::ValidNegative | Verdict::Inconclusive => Self::Measured,
            Verdict::Marginal | Verdict::Regression => Self::Misjudged,
            Verdict::Adopt => Self::Adopted,
            Verdict::Blocked if !accused => Self::Unjudged,
            Verdict::Blocked
            | Verdict::Infeasible
            | Verdict::OverBudget
            | Verdict::DoesNotCompile
            | Verdict::Incorrect
            | Verdict::Racy
            | Verdict::Aborted => Self::Accused,
        }
    }
}

/// Why the zoo could not be tried.
#[derive(Debug, Error)]
pub enum ZooError {
    /// The suites, which are built into the program, are invalid.
    #[error("the zoo's own suite: {0}; report it, it is a fault of this program")]
    Suite(#[from] SuiteError),
    /// The judge failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The program in Python cannot be written.
    #[error("the worker in Python cannot be written to {place}: {source}; check that there is room")]
    Files {
        /// The folder.
        place: PathBuf,
        /// The error.
        source: std::io::Error,
    },
}

/// The suite of the worker in Python.
const RMS_NORM: &str = include_str!("rms_norm.toml");

/// The time of one comparison.
const BUDGET: SignedDuration = SignedDuration::from_secs(15);

/// Compares each honest worker with itself, and reports each comparison to `observer` as it is done.
///
/// # Errors
/// If a comparison could not be made; a wrong verdict is reported, but is not an error.
pub fn run(
    settings: &Settings,
    observer: &mut dyn FnMut(&ResidentReport),
) -> Result<Vec<ResidentReport>, ZooError> {
    let wanted = |name: &str| settings.names.is_empty() || settings.names.iter().any(|wanted| wanted == name);
    let mut reports = Vec::new();
    // Round after round, so that a change of the machine meets all workers alike.
    for run in 1..=settings.runs {
        for resident in residents().iter().filter(|resident| wanted(resident.name)) {
            let report = compare(settings, resident, run)?;
            observer(&report);
            reports.push(report);
        }
    }
    Ok(reports)
}

/// A worker's command, its suite, and the folder that must stay while it runs.
struct Home {
    command: Vec<PathBuf>,
    parameters: Parameters,
    suite: Suite,
    _folder: Option<Scratch>,
}

impl Home {
    /// `Err` with the reason if this machine lacks what the worker needs.
    fn of(settings: &Settings, resident: &Resident) -> Result<Result<Self, String>, ZooError> {
        let Habit::Numpy(script) = resident.habit else {
            return Ok(Ok(Self {
                command: settings.program.words(["worker", "zoo", resident.name]),
                parameters: cheats::parameters(),
                suite: cheats::suite()?,
                _folder: None,
            }));
        };
        let python = match python_with_numpy() {
            Ok(python) => python,
            Err(why) => return Ok(Err(why)),
        };
        let place = std::env::temp_dir();
        let files = |source| ZooError::Files {
            place: place.clone(),
            source,
        };
        let folder = Scratch::new().map_err(files)?;
        let program = folder.path().join("worker.py");
        std::fs::write(&program, script).map_err(files)?;
        Ok(Ok(Self {
            command: vec![python, program],
            parameters: Parameters::new(),
            suite: Suite::parse(RMS_NORM, Path::new("zoo"), gauntlet_families::TASKS)?,
            _folder: Some(folder),
        }))
    }
}

/// The Python interpreter that has numpy, or why there is none.
fn python_with_numpy() -> Result<PathBuf, String> {
    let asked = Command::new("python3")
        .args(["-c", "import numpy, sys; print(sys.executable)"])
        .output();
    match asked {
        Ok(answer) if answer.status.success() => {
            Ok(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()))
        }
        Ok(_) => Err("python3 has no numpy".to_owned()),
        Err(error) => Err(format!("python3 does not start: {error}")),
    }
}

fn compare(settings: &Settings, resident: &Resident, run: usize) -> Result<ResidentReport, ZooError> {
    let start = Instant::now();
    let report = |outcome, verdict, reason, comparison: Option<&Comparison>| ResidentReport {
        name: resident.name,
        story: resident.story,
        run,
        outcome,
        verdict,
        reason,
        interval: comparison.and_then(|comparison| comparison.assessment.suite.clone()),
        pairs: comparison.map_or(0, |comparison| {
            comparison.looks.last().map_or(0, |look| look.processes)
        }),
        seconds: start.elapsed().as_secs_f64(),
    };
    let home = match Home::of(settings, resident)? {
        Ok(home) => home,
        Err(why) => return Ok(report(Outcome::LeftOut, None, why, None)),
    };
    let judged = judge(&home)?;
    let comparison = judged.comparison.as_ref();
    let conduct = comparison.and_then(|comparison| comparison.conduct.as_ref());
    let suspicion = conduct.and_then(|conduct| conduct.suspicion);
    let accused = suspicion.is_none_or(|suspicion| suspicion.accuses());
    let outcome = Outcome::of(judged.verdict, accused);
    Ok(report(outcome, Some(judged.verdict), judged.reason, comparison))
}

/// Compares a worker with its twin.
fn judge(home: &Home) -> Result<Judgement, JudgeError> {
    let measurement = Measurement {
        looks: vec![4, 6, 9],
        budget: BUDGET,
        warm: true,
        ..Measurement::default()
    };
    let setting = Setting::new(Device::host(), &home.suite, measurement, Criteria::default());
    let limits = Limits {
        memory: cheats::MEMORY,
        ..Limits::default()
    };
    let nobody = WorkerCommand::new(home.command[0].clone(), []);
    let executor = Executor::Live(Workshop::new(nobody, Timeouts::default(), limits)?);
    let twin = |name| Candidate {
        command: Some(home.command.clone()),
        ..Candidate::new(name, home.parameters.clone())
    };
    let (baseline, candidate) = (twin("baseline"), twin("twin"));
    Session::new(&setting, &executor, [&baseline, &candidate]).compare()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_adoptions_and_accusations_are_failures() {
        for (verdict, accused, expected) in [
            (Verdict::ValidNegative, true, Outcome::Measured),
            (Verdict::Inconclusive, true, Outcome::Measured),
            (Verdict::Marginal, true, Outcome::Misjudged),
            (Verdict::Regression, true, Outcome::Misjudged),
            (Verdict::Adopt, true, Outcome::Adopted),
            (Verdict::Blocked, false, Outcome::Unjudged),
            (Verdict::Blocked, true, Outcome::Accused),
            (Verdict::Incorrect, false, Outcome::Accused),
        ] {
            let outcome = Outcome::of(verdict, accused);
            assert_eq!(outcome, expected, "{verdict}");
            let failure = matches!(expected, Outcome::Adopted | Outcome::Accused);
            assert_eq!(outcome.is_failure(), failure);
        }
    }

    #[test]
    fn the_suite_of_the_worker_in_python_can_be_read() {
        let suite = Suite::parse(RMS_NORM, Path::new("zoo"), gauntlet_families::TASKS).unwrap();
        assert_eq!(suite.benchmark.len(), 1);
    }
}
