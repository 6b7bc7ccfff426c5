//! The gates, one a file, cheapest first. A gate never reaches around another: what one finds travels to the next
//! in the [`Examination`].

mod compiles;
mod faster;
mod feasible;
mod profiled;
mod proved;
mod race_free;
pub(crate) mod right;
#[cfg(test)]
mod tests;
mod worth_it;

use std::time::{Duration, Instant};

use gauntlet_executor::protocol::FailureKind;
use gauntlet_executor::{Record, WorkerError};
use gauntlet_stats::Arm;

use crate::abort::{AbortRule, Metrics, PREDICTED_SPEEDUP};
use crate::candidate::Candidate;
use crate::comparison::Comparison;
use crate::error::LabError;
use crate::finding::{Evidence, Finding, Outcome, Prediction, Profile};
use crate::instruments::Counters;
use crate::observer::Observer;
use crate::pitch::Pitch;
use crate::round::Round;
use crate::verdict::Verdict;
use crate::workshop::Workshop;

pub use faster::Faster;
pub use right::fault;
pub use worth_it::predict;

/// The gates in order. Adding one is a file and a line here.
pub const GATES: [&dyn Gate; 8] = [
    &feasible::Feasible,
    &worth_it::WorthIt,
    &proved::Proved,
    &compiles::Compiles,
    &right::Right,
    &race_free::RaceFree,
    &profiled::Profiled,
    &faster::Faster,
];

/// One examination of a candidate.
pub trait Gate: Sync {
    /// Its name, as in findings and reports.
    fn name(&self) -> &'static str;
    /// Whether it applies to a baseline too, which has no claim and nothing to be compared with.
    fn examines_baselines(&self) -> bool {
        true
    }
    /// Whether it runs the candidate's kernel for its time.
    fn measures(&self) -> bool {
        false
    }
    /// Examines the candidate.
    fn examine(&self, examination: &Examination) -> Result<Found, Trouble>;
}

/// What an examination came to, before it is timed and named.
#[derive(Debug)]
pub struct Found {
    /// Whether the candidate goes on.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// What it rests on.
    pub evidence: Evidence,
}

impl Found {
    fn pass(reason: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            outcome: Outcome::Pass,
            reason: reason.into(),
            evidence,
        }
    }

    fn skip(reason: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Skip,
            reason: reason.into(),
            evidence: Evidence::Reason,
        }
    }

    fn stop(verdict: Verdict, reason: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            outcome: Outcome::Stop(verdict),
            reason: reason.into(),
            evidence,
        }
    }
}

/// Why an examination could not be finished.
#[derive(Debug)]
pub enum Trouble {
    /// The candidate's worker failed.
    Candidate(WorkerError),
    /// The control's worker failed.
    Control(WorkerError),
    /// A worker reported times that cannot be, or does not deserve to be believed.
    Void(String),
    /// What the candidate computed while it was timed is wrong.
    Wrong(String),
    /// The lab failed.
    Lab(LabError),
}

impl Trouble {
    /// The trouble of a worker of that side.
    pub fn of(arm: Arm, error: WorkerError) -> Self {
        match arm {
            Arm::Baseline => Self::Control(error),
            Arm::Candidate => Self::Candidate(error),
        }
    }

    /// How a worker died, if that is the trouble: another may live.
    pub fn death(&self) -> Option<&WorkerError> {
        let (Self::Candidate(error) | Self::Control(error) | Self::Lab(LabError::Executor(error))) = self
        else {
            return None;
        };
        Some(error).filter(|error| error.is_death())
    }
}

impl<T: Into<LabError>> From<T> for Trouble {
    fn from(error: T) -> Self {
        Self::Lab(error.into())
    }
}

/// What gates say that would have to run something on a device that is not here.
const NOT_HERE: &str = "not run: the device is not here";

/// Where evidence comes from.
pub enum Executor {
    /// Candidates are run.
    Live(Workshop),
    /// Candidates are compiled and not run: the device is not here.
    Compiled(Workshop),
    /// What was written down is served.
    Recorded(Record),
    /// Nothing is run: the model says what would come of it.
    Predicted,
}

/// A candidate on its way through the gates.
pub struct Examination<'a> {
    /// The round.
    pub round: &'a Round,
    /// What is examined.
    pub candidate: &'a Candidate,
    /// What it is compared with.
    pub control: &'a Candidate,
    /// Its pitch; none for a baseline.
    pub pitch: Option<&'a Pitch>,
    /// What runs it.
    pub executor: &'a Executor,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Figures found out about the baseline and, so far, about the candidate.
    pub metrics: Metrics,
    /// What earlier gates found.
    pub findings: Vec<Finding>,
    /// What the comparison came to, once it is measured: the round decides how long each may take.
    pub comparison: Option<Comparison>,
}

impl<'a> Examination<'a> {
    /// The record of this candidate, if the executor serves records: an error for a candidate without one.
    fn recorded(&self) -> Option<Result<&'a gauntlet_executor::CandidateRecord, Found>> {
        let Executor::Recorded(record) = self.executor else {
            return None;
        };
        Some(record.candidates.get(&self.candidate.name).ok_or_else(|| {
            let mut reason = format!(
                "left without a verdict: the record holds neither build, result nor time of `{}`, and none are invented",
                self.candidate.name
            );
            let rules = self.abort_rules(self.prediction());
            if let Some(rule) = AbortRule::unanswered(rules, &self.metrics).first() {
                reason.push_str(&format!("; its own rule, to give up when {}, waits for a profile too", rule.when));
            }
            Found::stop(Verdict::Blocked, reason, Evidence::Reason)
        }))
    }

    /// The pitch's abort rules that count. Those about the model's prediction do only where it may be relied on: elsewhere
    /// they neither stop a candidate nor leave a question open.
    fn abort_rules(&self, prediction: Option<Prediction>) -> impl Iterator<Item = &'a AbortRule> + use<'a> {
        let relied_on = prediction.is_some_and(|prediction| prediction.is_relied_on());
        let rules = self.pitch.map_or(&[][..], |pitch| &pitch.abort);
        rules
            .iter()
            .filter(move |rule| relied_on || !rule.asks_the_model())
    }

    /// What the model predicted, if a gate has asked it.
    pub fn prediction(&self) -> Option<Prediction> {
        self.findings.iter().find_map(|finding| match &finding.evidence {
            Evidence::Prediction(prediction) => Some(*prediction),
            _ => None,
        })
    }

    /// Adds a finding and the figures in it that abort rules may speak of.
    pub fn add(&mut self, finding: Finding) {
        match &finding.evidence {
            Evidence::Prediction(prediction) => {
                self.metrics
                    .insert(PREDICTED_SPEEDUP.to_owned(), prediction.middle);
            }
            Evidence::Resources { cases, .. } => {
                for (name, value) in cases.values().flat_map(|resources| &resources.0) {
                    let most = self.metrics.entry(format!("resources.{name}")).or_insert(*value);
                    *most = most.max(*value);
                }
            }
            Evidence::Profile { .. } => {
                let whose = if self.pitch.is_some() {
                    "candidate"
                } else {
                    "baseline"
                };
                self.metrics.extend(metrics_of_profile(&finding.evidence, whose));
            }
            _ => {}
        }
        self.findings.push(finding);
    }
}

/// Mean shares over the cases, as metrics of the candidate or the baseline.
fn mean_shares<'p>(profiles: impl Iterator<Item = &'p Profile> + Clone, whose: &str) -> Metrics {
    let count = profiles.clone().count().max(1) as f64;
    let mut metrics = Metrics::new();
    for (phase, share) in profiles.flat_map(|profile| &profile.shares) {
        *metrics.entry(format!("{whose}.{phase}-share")).or_insert(0.0) += share / count;
    }
    metrics
}

/// The figures of a profile, as metrics of the candidate or the baseline; none of other evidence.
pub fn metrics_of_profile(evidence: &Evidence, whose: &str) -> Metrics {
    let Evidence::Profile { cases, counters } = evidence else {
        return Metrics::new();
    };
    let mut metrics = mean_shares(cases.values(), whose);
    metrics.extend(counters.iter().flat_map(|counters| figures(counters, whose)));
    metrics
}

/// A GPU's counters, as metrics of the candidate or the baseline.
fn figures(counters: &Counters, whose: &str) -> Metrics {
    let figures = counters.figures.iter();
    figures
        .map(|(name, value)| (format!("{whose}.{name}"), *value))
        .collect()
}

/// Runs a gate, watched and timed. A worker's death is tried once more, for a lone one may be an accident of the
/// machine; the second ends the candidate.
pub fn examine(gate: &dyn Gate, examination: &Examination) -> Result<Finding, LabError> {
    let start = Instant::now();
    let (observer, name) = (examination.observer, &examination.candidate.name);
    observer.gate_begins(name, gate.name());
    let mut result = gate.examine(examination);
    if let Err(trouble) = &result
        && let Some(error) = trouble.death()
    {
        observer.notice(&format!("{name}, {}: {error}; tried once more", gate.name()));
        result = gate.examine(examination);
    }
    let finding = conclude(gate, result, start.elapsed())?;
    observer.gate_ends(name, &finding);
    Ok(finding)
}

/// The finding that an examination's result comes to.
pub fn conclude(
    gate: &dyn Gate,
    result: Result<Found, Trouble>,
    took: Duration,
) -> Result<Finding, LabError> {
    let stop = |verdict, reason| Found::stop(verdict, reason, Evidence::Reason);
    let found = match result {
        Ok(found) => found,
        Err(Trouble::Candidate(error)) => found_in_failure(gate, &error),
        Err(Trouble::Control(error)) => stop(Verdict::Blocked, format!("the control failed: {error}")),
        Err(Trouble::Void(reason)) => stop(Verdict::Blocked, format!("void: {reason}")),
        Err(Trouble::Wrong(reason)) => stop(Verdict::Incorrect, reason),
        Err(Trouble::Lab(error)) => return Err(error),
    };
    Ok(Finding {
        gate: gate.name().to_owned(),
        outcome: found.outcome,
        reason: found.reason,
        evidence: found.evidence,
        seconds: took.as_secs_f64(),
    })
}

fn found_in_failure(gate: &dyn Gate, error: &WorkerError) -> Found {
    let verdict = match error {
        // A kill comes from outside: the out-of-memory killer or a person.
        WorkerError::Died { status, .. } if killed(status.as_ref()) => Verdict::Blocked,
        WorkerError::Start { .. } => Verdict::Blocked,
        // No memory or no device says nothing about the candidate.
        WorkerError::Failed(failure) if failure.kind == FailureKind::Broken => Verdict::Blocked,
        _ if gate.name() == compiles::Compiles.name() => Verdict::DoesNotCompile,
        _ => Verdict::Incorrect,
    };
    Found::stop(verdict, error.to_string(), Evidence::Reason)
}

fn killed(status: Option<&std::process::ExitStatus>) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.and_then(ExitStatusExt::signal) == Some(SIGKILL)
}

/// The same number on every Unix.
const SIGKILL: i32 = 9;
