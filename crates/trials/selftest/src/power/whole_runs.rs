//! Runs from start to end, in turn, as a tool does that times commands: what the rival rules decide on.

use std::time::{Duration, Instant};

use gauntlet_judge::{Candidate, ExaminationFailure, Operands, Setting, Workshop};
use gauntlet_stats::Arm;
use gauntlet_task::Case;
use gauntlet_worker::WorkerError;

/// Calls in a run. The results of all of them stay in the worker's memory until the next request.
const CALLS: usize = 64;

/// Runs of each side at least, however long they take.
const MIN_RUNS: usize = 2;

/// The runs of one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WholeRuns {
    /// Seconds of each run, from the start of the process to its end.
    pub runs: Vec<f64>,
    /// Seconds of each call, in order.
    pub calls: Vec<f64>,
}

/// The runs of both sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sides {
    /// The baseline's.
    pub baseline: WholeRuns,
    /// The candidate's.
    pub candidate: WholeRuns,
}

/// Runs both sides in turn for that long, on the first benchmark case.
pub fn collect(
    workshop: &Workshop,
    setting: &Setting,
    [baseline, candidate]: [&Candidate; 2],
    time: Duration,
) -> Result<Sides, ExaminationFailure> {
    let mut sides = Sides::default();
    let Some(case) = setting.benchmark_cases.first() else {
        return Ok(sides);
    };
    let (_, operands) = Operands::write(workshop, case, case.inputs, rand::random())?;
    let start = Instant::now();
    while start.elapsed() < time || sides.candidate.runs.len() < MIN_RUNS {
        run(
            workshop,
            case,
            (Arm::Baseline, baseline),
            &operands,
            &mut sides.baseline,
        )?;
        run(
            workshop,
            case,
            (Arm::Candidate, candidate),
            &operands,
            &mut sides.candidate,
        )?;
    }
    Ok(sides)
}

fn run(
    workshop: &Workshop,
    case: &Case,
    (arm, candidate): (Arm, &Candidate),
    operands: &Operands,
    runs: &mut WholeRuns,
) -> Result<(), ExaminationFailure> {
    let start = Instant::now();
    let (mut worker, _) = workshop.start(arm, candidate)?;
    let mut timed = || -> Result<_, WorkerError> {
        worker.build(&case.sizes, &candidate.schedule)?;
        worker.load(&[operands.path()], 1)?;
        worker.prepare()?;
        let (samples, _) = worker.time(&[0; CALLS], false)?;
        worker.stop()?;
        Ok(samples)
    };
    let samples = timed().map_err(|error| ExaminationFailure::of(arm, error))?;
    runs.runs.push(start.elapsed().as_secs_f64());
    runs.calls.extend(samples.iter().map(|sample| sample.call));
    Ok(())
}
