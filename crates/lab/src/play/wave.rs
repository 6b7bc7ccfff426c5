//! A wave: entrants that wait for nobody's verdict, examined side by side. All pass the cheap gates first; then the
//! round's time is spent on those that are left.

use std::time::Duration;

use super::Player;
use super::entrants::Entrant;
use super::patience::{Closed, spend};
use crate::abort::Metrics;
use crate::candidate::Candidate;
use crate::comparison::{Comparison, Contest};
use crate::error::LabError;
use crate::finding::Finding;
use crate::gates::{self, Examination, Executor, Faster, GATES, Gate, Trouble};
use crate::journal::Place;
use crate::ledger::RecordKind;
use crate::outcome::{Judged, conclude};
use crate::verdict::Verdict;
use crate::workshop::Workshop;

/// An entrant on its way.
pub struct Contestant<'a> {
    entrant: Entrant<'a>,
    control: Candidate,
    candidate: Candidate,
    findings: Vec<Finding>,
}

impl<'a> Contestant<'a> {
    /// At the start.
    pub fn new(entrant: Entrant<'a>, control: Candidate, candidate: Candidate) -> Self {
        Self {
            entrant,
            control,
            candidate,
            findings: Vec::new(),
        }
    }

    /// Who it is.
    pub fn entrant(&self) -> &Entrant<'a> {
        &self.entrant
    }
}

/// What befell an entrant, and the time that its comparison took.
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
    /// Takes contestants through the gates, the comparisons together taking no more than a `share` for each, and what is
    /// kept for fallbacks that turn out needless; `judged` is told of each as its verdict falls.
    pub(super) fn play_wave<'e>(
        &self,
        contestants: Vec<Contestant<'e>>,
        executor: &Executor,
        metrics: &Metrics,
        share: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut measured = Vec::new();
        let mut budget = share.saturating_mul(u32::try_from(contestants.len()).unwrap_or(u32::MAX));
        let mut judged = |one: Played<'e>| {
            let freed = one.freed(share);
            judged(one).map(|()| freed)
        };
        for mut contestant in contestants {
            let waits = self.pass_cheap_gates(&mut contestant, executor, metrics)?;
            match executor {
                Executor::Live(workshop) if waits => measured.push((contestant, workshop)),
                _ => budget += judged(self.played(contestant, Duration::ZERO))?,
            }
        }
        self.contest(measured, executor, metrics, budget, judged)
    }

    /// Whether only the comparison is left to be done.
    fn pass_cheap_gates(
        &self,
        contestant: &mut Contestant,
        executor: &Executor,
        metrics: &Metrics,
    ) -> Result<bool, LabError> {
        let live = matches!(executor, Executor::Live(_));
        let mut examination = self.examination(contestant, executor, metrics);
        // A comparison made before the run was cut short need not be made again.
        let compared = self.known(&examination, &Faster).is_some();
        let gates = GATES
            .iter()
            .copied()
            .filter(|gate| !live || compared || gate.name() != Faster.name());
        self.pass_gates(&mut examination, gates)?;
        contestant.findings = examination.findings;
        let stopped = contestant
            .findings
            .iter()
            .any(|finding| finding.stops().is_some());
        Ok(live && !stopped && !compared && self.settings.measure)
    }

    fn contest<'e>(
        &self,
        contestants: Vec<(Contestant<'e>, &Workshop)>,
        executor: &Executor,
        metrics: &Metrics,
        mut budget: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<Duration, LabError>,
    ) -> Result<(), LabError> {
        let mut waiting = Vec::new();
        let mut contests = Vec::new();
        for (mut contestant, workshop) in contestants {
            let (control, candidate) = (contestant.control.clone(), contestant.candidate.clone());
            match Contest::new(workshop, self.round, control, candidate, rand::random()) {
                Ok(contest) => {
                    contests.push(contest);
                    waiting.push(Some(contestant));
                }
                Err(trouble) => {
                    let finding = gates::conclude(&Faster, Err(trouble), Duration::ZERO)?;
                    self.note(&contestant, &finding)?;
                    contestant.findings.push(finding);
                    budget += judged(self.played(contestant, Duration::ZERO))?;
                }
            }
        }
        spend(contests, budget, self.observer, |closed: Closed<Contest>| {
            let Some(mut contestant) = waiting.get_mut(closed.index).and_then(Option::take) else {
                return Ok(Duration::ZERO);
            };
            let finding = self.compared(
                &contestant,
                executor,
                metrics,
                closed.bout.and_then(Contest::finish),
                closed.spent,
            )?;
            self.note(&contestant, &finding)?;
            contestant.findings.push(finding);
            judged(self.played(contestant, closed.spent))
        })
    }

    fn examination<'x>(
        &'x self,
        contestant: &'x Contestant,
        executor: &'x Executor,
        metrics: &Metrics,
    ) -> Examination<'x> {
        Examination {
            round: self.round,
            candidate: &contestant.candidate,
            control: &contestant.control,
            pitch: Some(contestant.entrant.pitch),
            executor,
            observer: self.observer,
            metrics: metrics.clone(),
            findings: Vec::new(),
            comparison: None,
        }
    }

    /// What the last gate says of a comparison.
    fn compared(
        &self,
        contestant: &Contestant,
        executor: &Executor,
        metrics: &Metrics,
        comparison: Result<Comparison, Trouble>,
        took: Duration,
    ) -> Result<Finding, LabError> {
        let mut examination = self.examination(contestant, executor, metrics);
        let found = comparison.and_then(|comparison| {
            examination.comparison = Some(comparison);
            Faster.examine(&examination)
        });
        let finding = gates::conclude(&Faster, found, took)?;
        self.observer.gate_ends(&contestant.candidate.name, &finding);
        Ok(finding)
    }

    fn note(&self, contestant: &Contestant, finding: &Finding) -> Result<(), LabError> {
        let place = Place {
            pitch: Some(&contestant.candidate.name),
            gate: Some(&finding.gate),
            ..self.place()
        };
        self.journal.write(RecordKind::Finding, place, finding)
    }

    fn played<'e>(&self, contestant: Contestant<'e>, spent: Duration) -> Played<'e> {
        let Contestant {
            entrant,
            control,
            candidate,
            findings,
        } = contestant;
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
