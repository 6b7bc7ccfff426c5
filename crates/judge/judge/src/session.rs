//! Examination of one candidate: the order of the gates, the clock, the retry after a worker's death, and the verdict.

use std::time::{Duration, Instant};

use gauntlet_worker::WorkerError;

use crate::evidence::{Comparison, Evidence, Finding, JudgeError, Outcome, Verdict};
use crate::gates::{
    Answer, Compiles, Examination, Faster, Feasible, Found, Gate, Profiled, Proved, RaceFree, Right, WorthIt,
};
use crate::runner::ExaminationFailure;

mod both;
#[cfg(test)]
mod tests;

pub use both::examine_both;

/// The gates in order: cheaper ones come first.
pub const GATES: [&dyn Gate; 8] = [
    &Feasible, &WorthIt, &Proved, &Compiles, &Right, &RaceFree, &Profiled, &Faster,
];

/// Runs a gate on a candidate, with progress reports and timing. If a worker dies, the gate is run once more, because a
/// single death may be an accident of the machine; the second death ends the candidate. None if the gate needs a paired
/// comparison first: the caller measures one and calls [`resume`].
///
/// # Errors
/// If the judge itself fails.
pub fn examine(gate: &dyn Gate, examination: &Examination) -> Result<Option<Finding>, JudgeError> {
    let start = Instant::now();
    let (observer, name) = (examination.observer, &examination.candidate.name);
    observer.gate_begins(name, gate.name());
    let mut result = gate.examine(examination);
    if let Err(failure) = &result
        && let Some(error) = failure.death()
    {
        observer.notice(&format!("{name}, {}: {error}; tried once more", gate.name()));
        result = gate.examine(examination);
    }
    let found = match result {
        Ok(Answer::Pending) => return Ok(None),
        Ok(Answer::Found(found)) => Ok(found),
        Err(failure) => Err(failure),
    };
    Ok(Some(concluded(gate, examination, found, start.elapsed())?))
}

/// Asks a gate again after the paired comparison that it needed was measured, or failed. `took` is the time of the
/// comparison.
///
/// # Errors
/// If the judge itself fails.
pub fn resume(
    gate: &dyn Gate,
    examination: &mut Examination,
    compared: Result<Comparison, ExaminationFailure>,
    took: Duration,
) -> Result<Finding, JudgeError> {
    let found = compared.and_then(|comparison| {
        examination.comparison = Some(comparison);
        match gate.examine(examination)? {
            Answer::Found(found) => Ok(found),
            Answer::Pending => Ok(Found::skip("it was not measured")),
        }
    });
    concluded(gate, examination, found, took)
}

/// Adds name and time to the result of a gate, and notifies the observer.
fn concluded(
    gate: &dyn Gate,
    examination: &Examination,
    result: Result<Found, ExaminationFailure>,
    took: Duration,
) -> Result<Finding, JudgeError> {
    let stop = |verdict, reason| Found::stop(verdict, reason, Evidence::Reason);
    let found = match result {
        Ok(found) => found,
        Err(ExaminationFailure::Candidate(error)) => found_in_failure(gate, &error),
        Err(ExaminationFailure::Baseline(error)) => {
            stop(Verdict::Blocked, format!("the baseline failed: {error}"))
        }
        Err(ExaminationFailure::Void(reason)) => stop(Verdict::Blocked, format!("void: {reason}")),
        Err(ExaminationFailure::Wrong(reason)) => stop(Verdict::Incorrect, reason),
        Err(ExaminationFailure::Judge(error)) => return Err(error),
    };
    let finding = Finding {
        gate: gate.name().to_owned(),
        outcome: found.outcome,
        reason: found.reason,
        evidence: found.evidence,
        seconds: took.as_secs_f64(),
    };
    examination
        .observer
        .gate_ends(&examination.candidate.name, &finding);
    Ok(finding)
}

/// The verdict that follows from the findings, and its reason.
pub fn conclude(findings: &[Finding]) -> (Verdict, String) {
    match findings
        .iter()
        .find(|finding| finding.stops().is_some())
        .or(findings.last())
    {
        Some(Finding {
            outcome: Outcome::Stop(verdict),
            reason,
            ..
        }) => (*verdict, reason.clone()),
        Some(last) => (Verdict::Adopt, last.reason.clone()),
        None => (Verdict::Blocked, "no gate examined it".to_owned()),
    }
}

fn found_in_failure(gate: &dyn Gate, error: &WorkerError) -> Found {
    let verdict = if error.is_of_the_machine() {
        Verdict::Blocked
    } else {
        gate.on_worker_failure()
    };
    Found::stop(verdict, error.to_string(), Evidence::Reason)
}
