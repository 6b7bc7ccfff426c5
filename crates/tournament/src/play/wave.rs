//! A wave: entrants that wait for nobody's verdict, examined side by side. All pass the cheap gates first; then the
//! round's time is spent on those that are left.

use std::time::Duration;

use gauntlet_judge::gates::{Examination, Gate};
use gauntlet_judge::ledger::RecordKind;
use gauntlet_judge::session::{GATES, conclude, resume};
use gauntlet_judge::{
    Candidate, Comparison, ExaminationFailure, Executor, Finding, Metrics, PairedComparison, RecordPlace,
    Verdict, Workshop,
};

use super::entrants::Entrant;
use super::sharing::{Closed, spend};
use super::{Player, proposal};
use crate::error::TournamentError;
use crate::outcome::Judged;

/// An entrant on its way.
pub struct Underway<'a> {
    entrant: Entrant<'a>,
    control: Candidate,
    candidate: Candidate,
    findings: Vec<Finding>,
}

impl<'a> Underway<'a> {
    /// At the start.
    pub fn new(entrant: Entrant<'a>, control: Candidate, candidate: Candidate) -> Self {
        Self {
            entrant,
            control,
            candidate,
            findings: Vec::new(),
        }
    }

    /// The entrant itself.
    pub fn entrant(&self) -> &Entrant<'a> {
        &self.entrant
    }
}

/// The outcome of an entrant, and the time that its comparison took.
pub struct Played<'a> {
    /// The entrant.
    pub entrant: Entrant<'a>,
    /// Its verdict.
    pub judged: Judged,
    /// The time of its comparison.
    pub spent: Duration,
}

impl<'a> Played<'a> {
    /// One that was not examined, and so took no time.
    pub fn refused(entrant: Entrant<'a>, judged: Judged) -> Self {
        Self {
            entrant,
            judged,
            spent: Duration::ZERO,
        }
    }

    /// The time that was kept for its fallback and that its verdict sets free: others may take it.
    fn freed(&self, share: Duration) -> Duration {
        if self.entrant.spares_its_fallback(self.judged.verdict) {
            share
        } else {
            Duration::ZERO
        }
    }
}

impl Player<'_> {
    /// Takes entrants through the gates. The comparisons together take no more than a `share` for each, and what is kept for
    /// fallbacks that turn out needless; `judged` is told of each entrant as its verdict falls.
    pub(super) fn play_wave<'e>(
        &self,
        wave: Vec<Underway<'e>>,
        executor: &Executor,
        metrics: &Metrics,
        share: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<(), TournamentError>,
    ) -> Result<(), TournamentError> {
        let mut measured = Vec::new();
        let mut budget = share.saturating_mul(u32::try_from(wave.len()).unwrap_or(u32::MAX));
        let mut judged = |one: Played<'e>| {
            let freed = one.freed(share);
            judged(one).map(|()| freed)
        };
        for mut underway in wave {
            let mut examination = self.examination(&underway, executor, metrics);
            let pending = self.pass_gates(&mut examination, GATES.into_iter())?;
            underway.findings = examination.findings;
            match (pending, executor) {
                (Some(gate), Executor::Live(workshop)) => measured.push((underway, gate, workshop)),
                _ => budget += judged(self.played(underway, Duration::ZERO))?,
            }
        }
        self.compare(measured, executor, metrics, budget, judged)
    }

    /// Measures those whose gate waits for a comparison.
    fn compare<'e, 'g>(
        &self,
        measured: Vec<(Underway<'e>, &'g dyn Gate, &Workshop)>,
        executor: &Executor,
        metrics: &Metrics,
        mut budget: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<Duration, TournamentError>,
    ) -> Result<(), TournamentError> {
        let mut waiting = Vec::new();
        let mut comparisons = Vec::new();
        for (underway, gate, workshop) in measured {
            let (baseline, candidate) = (underway.control.clone(), underway.candidate.clone());
            let setting = &self.round.setting;
            match PairedComparison::new(workshop, setting, baseline, candidate, rand::random()) {
                Ok(comparison) => {
                    comparisons.push(comparison);
                    waiting.push(Some((underway, gate)));
                }
                Err(failure) => {
                    let underway =
                        self.resumed(underway, gate, executor, metrics, Err(failure), Duration::ZERO)?;
                    budget += judged(self.played(underway, Duration::ZERO))?;
                }
            }
        }
        spend(
            comparisons,
            budget,
            self.observer,
            |closed: Closed<PairedComparison>| {
                let Some((underway, gate)) = waiting.get_mut(closed.index).and_then(Option::take) else {
                    return Ok(Duration::ZERO);
                };
                let compared = closed.comparison.and_then(PairedComparison::finish);
                let underway = self.resumed(underway, gate, executor, metrics, compared, closed.spent)?;
                judged(self.played(underway, closed.spent))
            },
        )
    }

    fn examination<'x>(
        &'x self,
        underway: &'x Underway,
        executor: &'x Executor,
        metrics: &Metrics,
    ) -> Examination<'x> {
        Examination {
            setting: &self.round.setting,
            candidate: &underway.candidate,
            baseline: &underway.control,
            proposal: Some(proposal(underway.entrant.pitch)),
            executor,
            observer: self.observer,
            metrics: metrics.clone(),
            findings: Vec::new(),
            comparison: None,
        }
    }

    /// Asks the gate that was pending again, and writes down what it finds.
    fn resumed<'e>(
        &self,
        mut underway: Underway<'e>,
        gate: &dyn Gate,
        executor: &Executor,
        metrics: &Metrics,
        compared: Result<Comparison, ExaminationFailure>,
        took: Duration,
    ) -> Result<Underway<'e>, TournamentError> {
        let mut examination = self.examination(&underway, executor, metrics);
        let finding = resume(gate, &mut examination, compared, took)?;
        let place = RecordPlace {
            pitch: Some(&underway.candidate.name),
            gate: Some(&finding.gate),
            ..self.place()
        };
        self.journal.write(RecordKind::Finding, place, &finding)?;
        underway.findings.push(finding);
        Ok(underway)
    }

    fn played<'e>(&self, underway: Underway<'e>, spent: Duration) -> Played<'e> {
        let Underway {
            entrant,
            control,
            candidate,
            findings,
        } = underway;
        let (verdict, reason) = match conclude(&findings) {
            (Verdict::Adopt, _) if !self.settings.measure => (
                Verdict::Inconclusive,
                "it passes every gate that measures nothing; it was not measured".to_owned(),
            ),
            concluded => concluded,
        };
        let judged = self.judged(&entrant, &control, candidate, verdict, reason, findings);
        Played {
            entrant,
            judged,
            spent,
        }
    }
}
