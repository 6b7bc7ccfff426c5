//! A wave: entries that wait for no verdict, examined together. All pass the cheap gates first; then the round's time
//! is spent on the remaining ones.

use std::time::Duration;

use gauntlet_gates::GATES;
use gauntlet_judge::gates::{Examination, Gate};
use gauntlet_judge::ledger::RecordKind;
use gauntlet_judge::session::{conclude, resume};
use gauntlet_judge::{
    Candidate, Comparison, ExaminationFailure, Executor, Finding, Metrics, PairedComparison, RecordPlace,
    Verdict, Workshop,
};

use super::entries::Entry;
use super::sharing::{Closed, spend};
use super::watched::Watching;
use super::{Player, proposal};
use crate::error::TournamentError;
use crate::outcome::Judged;

/// The part of a quick round's time that is kept for judging once more, watched, what it would adopt.
pub const WATCHED: u32 = 4;

/// An entry under examination.
pub struct Underway<'a> {
    entry: Entry<'a>,
    pub baseline: Candidate,
    pub candidate: Candidate,
    pub findings: Vec<Finding>,
}

impl<'a> Underway<'a> {
    /// An entry that has not been examined yet.
    pub fn new(entry: Entry<'a>, baseline: Candidate, candidate: Candidate) -> Self {
        Self {
            entry,
            baseline,
            candidate,
            findings: Vec::new(),
        }
    }

    /// The entry itself.
    pub fn entry(&self) -> &Entry<'a> {
        &self.entry
    }

    /// The entry, which is not examined after all.
    pub fn into_entry(self) -> Entry<'a> {
        self.entry
    }
}

/// The outcome of an entry, and the time that its comparison took.
pub struct Played<'a> {
    /// The entry.
    pub entry: Entry<'a>,
    /// Its verdict.
    pub judged: Judged,
    /// The time of its comparison.
    pub spent: Duration,
}

impl<'a> Played<'a> {
    /// An entry that was not examined, and so took no time.
    pub fn refused(entry: Entry<'a>, judged: Judged) -> Self {
        Self {
            entry,
            judged,
            spent: Duration::ZERO,
        }
    }

    /// The time that was reserved for its fallback and that its verdict frees for others.
    fn freed(&self, share: Duration) -> Duration {
        if self.entry.spares_its_fallback(self.judged.verdict) {
            share
        } else {
            Duration::ZERO
        }
    }
}

impl Player<'_> {
    /// Takes entries through the gates. The comparisons together take no more than a `share` for each entry, plus the
    /// time reserved for fallbacks that turn out unnecessary; `judged` is called for each entry when it gets its
    /// verdict.
    pub(super) fn play_wave<'e>(
        &self,
        wave: Vec<Underway<'e>>,
        executor: &Executor,
        metrics: &Metrics,
        share: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<(), TournamentError>,
    ) -> Result<(), TournamentError> {
        if let Some(elsewhere) = self.elsewhere() {
            return self.play_wave_elsewhere(elsewhere, wave, metrics, share, judged);
        }
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

    /// Measures the entries whose gate waits for a comparison.
    fn compare<'e, 'g>(
        &self,
        measured: Vec<(Underway<'e>, &'g dyn Gate, &Workshop)>,
        executor: &Executor,
        metrics: &Metrics,
        mut budget: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<Duration, TournamentError>,
    ) -> Result<(), TournamentError> {
        let watching = Watching::of(self.round, self.observer);
        let mut kept = watching.as_ref().map_or(Duration::ZERO, |_| budget / WATCHED);
        budget -= kept;
        let mut waiting = Vec::new();
        let mut comparisons = Vec::new();
        for (underway, gate, workshop) in measured {
            let (baseline, candidate) = (underway.baseline.clone(), underway.candidate.clone());
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
                let (compared, again) = match (&watching, executor) {
                    (Some(watching), Executor::Live(workshop)) => {
                        let arms = [&underway.baseline, &underway.candidate];
                        watching.judge_again(workshop, arms, compared, kept)
                    }
                    _ => (compared, Duration::ZERO),
                };
                kept = kept.saturating_sub(again);
                let spent = closed.spent + again;
                let underway = self.resumed(underway, gate, executor, metrics, compared, spent)?;
                judged(self.played(underway, spent))
            },
        )
    }

    fn examination<'x>(
        &'x self,
        underway: &'x Underway,
        executor: &'x Executor,
        metrics: &Metrics,
    ) -> Examination<'x> {
        let arms = [&underway.baseline, &underway.candidate];
        Examination {
            proposal: Some(proposal(underway.entry.pitch)),
            metrics: metrics.clone(),
            ..Examination::new(&self.round.setting, arms, executor, self.observer)
        }
    }

    /// Asks the pending gate again, and records its finding.
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

    pub(super) fn played<'e>(&self, underway: Underway<'e>, spent: Duration) -> Played<'e> {
        let Underway {
            entry,
            baseline,
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
        let judged = self.judged(&entry, &baseline, candidate, verdict, reason, findings);
        Played { entry, judged, spent }
    }
}
