//! The judge's own gates, one in each file. Others can be handed to a session. A gate never calls another: its findings
//! travel to the next gate in the [`Examination`].

mod compiles;
mod edge_cases;
mod faster;
mod profiled;
mod race_free;
mod right;

use gauntlet_worker::CandidateRecord;

use crate::evidence::{
    AbortRule, Candidate, Comparison, Counters, Evidence, Finding, Metrics, Outcome, PREDICTED_SPEEDUP,
    Prediction, Profile, Proposal, Setting, Verdict,
};
use crate::observer::Observer;
use crate::runner::{ExaminationFailure, Executor};

pub use compiles::Compiles;
pub use faster::Faster;
pub use profiled::Profiled;
pub use race_free::RaceFree;
pub use right::Right;

use edge_cases::edge_cases;

/// One examination of a candidate.
pub trait Gate: Sync {
    /// Its name, as in findings and reports.
    fn name(&self) -> &'static str;
    /// Whether the gate applies to a baseline too, which has no claim and nothing to be compared with.
    fn examines_baselines(&self) -> bool {
        true
    }
    /// Whether the gate times the candidate's kernel.
    fn measures(&self) -> bool {
        false
    }
    /// Whether the gate needs times of pairs of processes where candidates run. They take so long that the session, or the round,
    /// decides how many pairs each candidate gets; it puts the result into [`Examination::comparison`] and then asks the gate.
    fn needs_pairs(&self) -> bool {
        false
    }
    /// The verdict on a candidate whose worker fails in this gate, if no outside cause explains the failure.
    fn on_worker_failure(&self) -> Verdict {
        Verdict::Incorrect
    }
    /// Examines the candidate.
    ///
    /// # Errors
    /// If the examination could not be finished.
    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure>;
}

impl dyn Gate + '_ {
    /// Whether a finding comes from this gate.
    pub fn found(&self, finding: &Finding) -> bool {
        finding.gate == self.name()
    }
}

/// The result of an examination, before it is timed and named.
#[derive(Debug)]
pub struct Found {
    /// Whether the candidate continues.
    pub outcome: Outcome,
    /// Why.
    pub reason: String,
    /// The evidence.
    pub evidence: Evidence,
}

impl Found {
    /// The candidate continues.
    pub fn pass(reason: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            outcome: Outcome::Pass,
            reason: reason.into(),
            evidence,
        }
    }

    /// The candidate continues unexamined.
    pub fn skip(reason: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Skip,
            reason: reason.into(),
            evidence: Evidence::Reason,
        }
    }

    /// The candidate ends here.
    pub fn stop(verdict: Verdict, reason: impl Into<String>, evidence: Evidence) -> Self {
        Self {
            outcome: Outcome::Stop(verdict),
            reason: reason.into(),
            evidence,
        }
    }
}

/// The reason of gates that skip because the device on which they would run is not present.
const NOT_HERE: &str = "not run: the device is not here";

/// A candidate on its way through the gates.
pub struct Examination<'a> {
    /// The device, the cases and the rules.
    pub setting: &'a Setting,
    /// The candidate.
    pub candidate: &'a Candidate,
    /// The baseline.
    pub baseline: &'a Candidate,
    /// What the candidate's author fixed beforehand; none for a baseline.
    pub proposal: Option<Proposal<'a>>,
    /// Runs the candidate.
    pub executor: &'a Executor,
    /// Receives progress reports.
    pub observer: &'a dyn Observer,
    /// Figures determined for the baseline and, so far, for the candidate.
    pub metrics: Metrics,
    /// The findings of earlier gates.
    pub findings: Vec<Finding>,
    /// The paired comparison, once it is measured (see [`Gate::needs_pairs`]).
    pub comparison: Option<Comparison>,
}

impl<'a> Examination<'a> {
    /// A candidate before any gate.
    pub fn new(
        setting: &'a Setting,
        [baseline, candidate]: [&'a Candidate; 2],
        executor: &'a Executor,
        observer: &'a dyn Observer,
    ) -> Self {
        Self {
            setting,
            candidate,
            baseline,
            proposal: None,
            executor,
            observer,
            metrics: Metrics::new(),
            findings: Vec::new(),
            comparison: None,
        }
    }

    /// Whether a gate cannot be asked before pairs of processes are measured.
    pub fn lacks_pairs_for(&self, gate: &dyn Gate) -> bool {
        gate.needs_pairs() && self.comparison.is_none() && matches!(self.executor, Executor::Live(_))
    }

    /// The record of this candidate, if the executor serves records; an error for a candidate without one.
    fn recorded(&self) -> Option<Result<&'a CandidateRecord, Found>> {
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

    /// The candidate's abort rules that apply. Rules about the model's prediction apply only where predictions are
    /// relied on: elsewhere they neither stop a candidate nor leave a question open.
    pub fn abort_rules(
        &self,
        prediction: Option<Prediction>,
    ) -> impl Iterator<Item = &'a AbortRule> + use<'a> {
        let relied_on = prediction.is_some_and(|prediction| prediction.is_relied_on());
        let rules = self.proposal.map_or(&[][..], |proposal| proposal.abort);
        rules
            .iter()
            .filter(move |rule| relied_on || !rule.asks_the_model())
    }

    /// The prefix of the names of its metrics.
    fn side(&self) -> &'static str {
        if self.proposal.is_some() {
            "candidate"
        } else {
            "baseline"
        }
    }

    /// The model's prediction, if a gate has requested it.
    pub fn prediction(&self) -> Option<Prediction> {
        self.findings.iter().find_map(|finding| match &finding.evidence {
            Evidence::Prediction(prediction) => Some(**prediction),
            _ => None,
        })
    }

    /// Adds a finding, and its figures that abort rules may use.
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
                self.metrics
                    .extend(metrics_of_profile(&finding.evidence, self.side()));
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

/// The figures of a profile, as metrics of the candidate or the baseline; empty for other evidence.
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
