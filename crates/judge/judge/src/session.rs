//! The front door: two kernels on one task, taken through gates to a verdict.

use std::time::{Duration, Instant};

use gauntlet_stats::Arm;
use gauntlet_worker::WorkerError;
use gauntlet_worker::protocol::FailureKind;

use crate::comparison::{Observations, measure_more, measure_observed};
use crate::evidence::{Candidate, Comparison, Evidence, Finding, JudgeError, Outcome, Setting, Verdict};
use crate::gates::{Compiles, Examination, Faster, Found, Gate, Profiled, RaceFree, Right};
use crate::observer::{Blind, Observer};
use crate::runner::{ExaminationFailure, Executor};

mod both;
#[cfg(test)]
mod tests;

use both::examine_both;

/// The judge's own gates in order: cheaper ones come first, and the comparison last.
pub const OWN_GATES: [&dyn Gate; 5] = [&Compiles, &Right, &RaceFree, &Profiled, &Faster];

/// A baseline and a candidate under the same conditions.
pub struct Session<'a> {
    setting: &'a Setting,
    executor: &'a Executor,
    /// The baseline and the candidate.
    arms: [&'a Candidate; 2],
    gates: &'a [&'a dyn Gate],
    observer: &'a dyn Observer,
    earlier: Option<Earlier<'a>>,
}

/// A comparison that ended undecided or was interrupted, to which pairs are added.
#[derive(Clone, Copy)]
pub struct Earlier<'a> {
    /// What was found so far.
    pub comparison: &'a Comparison,
    /// What was observed so far.
    pub observations: &'a Observations,
    /// How many pairs to add, at least; none to go on as it was planned.
    pub pairs: Option<usize>,
}

/// The outcome of a session.
#[derive(Debug)]
pub struct Judgement {
    /// The kernel that the verdict is about: the baseline if it was stopped.
    pub side: Arm,
    /// The verdict.
    pub verdict: Verdict,
    /// Its reason.
    pub reason: String,
    /// What the gates found of the candidate; empty if a kernel was stopped before its gates began.
    pub findings: Vec<Finding>,
    /// The times; none if a kernel was stopped before there were any.
    pub comparison: Option<Comparison>,
    /// What is kept so that pairs can be added; none without times.
    pub observations: Option<Observations>,
}

impl Judgement {
    /// The outcome for a kernel that a gate stopped before there were times; none if it was not stopped.
    fn stopped(side: Arm, finding: Finding) -> Option<Self> {
        Some(Self {
            side,
            verdict: finding.stops()?,
            reason: finding.reason,
            findings: Vec::new(),
            comparison: None,
            observations: None,
        })
    }
}

impl<'a> Session<'a> {
    /// A baseline and a candidate, in this order, with the judge's own gates.
    pub fn new(setting: &'a Setting, executor: &'a Executor, arms: [&'a Candidate; 2]) -> Self {
        Self {
            setting,
            executor,
            arms,
            gates: &OWN_GATES,
            observer: &Blind,
            earlier: None,
        }
    }

    /// With these gates, in this order, in place of the judge's own.
    pub fn through(self, gates: &'a [&'a dyn Gate]) -> Self {
        Self { gates, ..self }
    }

    /// With an observer, who is told what happens while it happens.
    pub fn seen_by(self, observer: &'a dyn Observer) -> Self {
        Self { observer, ..self }
    }

    /// With pairs added to an earlier comparison, in place of a new one.
    pub fn adding_to(self, earlier: Option<Earlier<'a>>) -> Self {
        Self { earlier, ..self }
    }

    /// Whether both kernels are right, because the speed of a wrong one is irrelevant, and which is faster.
    ///
    /// # Errors
    /// If the judge itself fails.
    pub fn compare(&self) -> Result<Judgement, JudgeError> {
        let findings = examine_both(&Right, self.arms.map(|arm| self.examination(arm)))?;
        for (side, finding) in [Arm::Baseline, Arm::Candidate].into_iter().zip(findings) {
            if let Some(stopped) = finding.and_then(|finding| Judgement::stopped(side, finding)) {
                return Ok(stopped);
            }
        }
        self.through_gates(&[&Faster])
    }

    /// Whether the baseline is right, and what becomes of the candidate in all gates.
    ///
    /// # Errors
    /// If the judge itself fails.
    pub fn judge(&self) -> Result<Judgement, JudgeError> {
        let finding = examine(&Right, &self.examination(self.arms[0]))?;
        match Judgement::stopped(Arm::Baseline, finding) {
            Some(stopped) => Ok(stopped),
            None => self.through_gates(self.gates),
        }
    }

    fn examination(&self, arm: &'a Candidate) -> Examination<'a> {
        Examination::new(self.setting, [self.arms[0], arm], self.executor, self.observer)
    }

    fn through_gates(&self, gates: &[&dyn Gate]) -> Result<Judgement, JudgeError> {
        let mut examination = self.examination(self.arms[1]);
        let mut observations = None;
        for gate in gates {
            let finding = if examination.lacks_pairs_for(*gate) {
                let start = Instant::now();
                let (compared, seen) = self.pairs().map_or_else(
                    |failure| (Err(failure), None),
                    |(comparison, observations)| (Ok(comparison), Some(observations)),
                );
                observations = seen;
                resume(*gate, &mut examination, compared, start.elapsed())?
            } else {
                examine(*gate, &examination)?
            };
            let stops = finding.stops().is_some();
            examination.add(finding);
            if stops {
                break;
            }
        }
        let (mut verdict, mut reason) = conclude(&examination.findings);
        // Only a comparison shows that a kernel is faster, whatever gates it went through.
        if verdict == Verdict::Adopt
            && !examination
                .findings
                .iter()
                .any(|finding| finding.comparison().is_some())
        {
            verdict = Verdict::Inconclusive;
            reason = "no gate compared it with the baseline".to_owned();
        }
        let seen: Option<&Observations> = observations.as_ref();
        if let Some(seen) = seen.filter(|seen| seen.interrupted) {
            verdict = Verdict::Inconclusive;
            reason = format!("interrupted after {} pairs of processes", seen.pairs());
        }
        Ok(Judgement {
            side: Arm::Candidate,
            verdict,
            reason,
            comparison: examination.comparison,
            findings: examination.findings,
            observations,
        })
    }

    /// Measures pairs of processes.
    fn pairs(&self) -> Result<(Comparison, Observations), ExaminationFailure> {
        let Executor::Live(workshop) = self.executor else {
            return Err(JudgeError::NoExecutor.into());
        };
        match self.earlier {
            None => {
                let budget = self.setting.measurement.budget.unsigned_abs();
                measure_observed(workshop, self.setting, self.arms, budget, self.observer)
            }
            Some(earlier) => {
                let so_far = (earlier.comparison, earlier.observations);
                measure_more(
                    workshop,
                    self.setting,
                    self.arms,
                    so_far,
                    earlier.pairs,
                    self.observer,
                )
            }
        }
    }
}

/// Runs a gate on a candidate, with progress reports and timing. If a worker dies, the gate is run once more, because a
/// single death [may be an accident](WorkerError::may_be_an_accident) of the machine; the second death ends the candidate. A gate that
/// [lacks pairs](Examination::lacks_pairs_for) is asked by [`resume`] instead.
///
/// # Errors
/// If the judge itself fails.
pub fn examine(gate: &dyn Gate, examination: &Examination) -> Result<Finding, JudgeError> {
    let start = Instant::now();
    let (observer, name) = (examination.observer, &examination.candidate.name);
    observer.gate_begins(name, gate.name());
    let mut found = gate.examine(examination);
    if let Err(failure) = &found
        && let Some(error) = failure.death()
        && error.may_be_an_accident()
    {
        observer.notice(&format!("{name}, {}: {error}; tried once more", gate.name()));
        found = gate.examine(examination);
    }
    concluded(gate, examination, found, start.elapsed())
}

/// Asks a gate after the pairs that it needs were measured, or could not be. `took` is the time of the comparison.
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
        gate.examine(examination)
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

/// The verdict that follows from the findings, and its reason: *adopt* if no gate stopped the candidate.
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
    let verdict = match error {
        error if error.is_of_the_machine() => Verdict::Blocked,
        WorkerError::Failed(failure) if failure.kind == FailureKind::Racy => Verdict::Racy,
        _ => gate.on_worker_failure(),
    };
    Found::stop(verdict, error.to_string(), Evidence::Reason)
}
