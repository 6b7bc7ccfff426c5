//! A wave, and a baseline, that are examined elsewhere.

use std::time::Duration;

use gauntlet_gates::GATES;
use gauntlet_judge::gates::Gate;
use gauntlet_judge::ledger::RecordKind;
use gauntlet_judge::{Candidate, ExecutorKind, Finding, Metrics, RecordPlace, Verdict};

use super::Player;
use super::wave::{Played, Underway};
use crate::errand::{Elsewhere, Errand, Promise};
use crate::error::TournamentError;

impl Player<'_> {
    /// Where this round's candidates are examined; none if that is here.
    pub(super) fn elsewhere(&self) -> Option<&dyn Elsewhere> {
        let runs = matches!(self.round.file().executor, ExecutorKind::Cpu | ExecutorKind::Cuda);
        let elsewhere = self.settings.elsewhere.as_deref();
        elsewhere.filter(|_| runs && !self.journal.is_replay())
    }

    /// Takes the entries of a wave through the gates elsewhere, all at the same time. Each comparison has its `share` of time to itself.
    pub(super) fn play_wave_elsewhere<'e>(
        &self,
        elsewhere: &dyn Elsewhere,
        wave: Vec<Underway<'e>>,
        metrics: &Metrics,
        share: Duration,
        mut judged: impl FnMut(Played<'e>) -> Result<(), TournamentError>,
    ) -> Result<(), TournamentError> {
        let mut waiting = Vec::new();
        let mut errands = Vec::new();
        for mut underway in wave {
            match self.known_of(&underway.candidate, |_| true) {
                Some(findings) => {
                    underway.findings = findings;
                    judged(self.played(underway, Duration::ZERO))?;
                }
                None => {
                    let pitch = underway.entry().pitch;
                    let promise = Promise {
                        abort: pitch.abort.clone(),
                        claim: pitch.claim.speedup.q50,
                    };
                    let arms = [&underway.baseline, &underway.candidate];
                    errands.push(self.errand(arms, Some(promise), metrics, share));
                    waiting.push(Some(underway));
                }
            }
        }
        elsewhere.run(&errands, self.observer, &mut |index, found| {
            let Some(mut underway) = waiting.get_mut(index).and_then(Option::take) else {
                return Ok(());
            };
            judged(match found {
                Ok(findings) => {
                    self.keep(&underway.candidate, &findings)?;
                    underway.findings = findings;
                    self.played(underway, Duration::ZERO)
                }
                Err(reason) => {
                    let refused = self.refuse(underway.entry(), &underway.baseline, Verdict::Blocked, reason);
                    Played::refused(underway.into_entry(), refused)
                }
            })
        })
    }

    /// What the gates that apply to a baseline find of it elsewhere, or why nothing was found.
    pub(super) fn qualified_elsewhere(
        &self,
        elsewhere: &dyn Elsewhere,
        baseline: &Candidate,
    ) -> Result<Result<Vec<Finding>, String>, TournamentError> {
        if let Some(known) = self.known_of(baseline, |gate| gate.examines_baselines()) {
            return Ok(Ok(known));
        }
        let errand = self.errand([baseline; 2], None, &Metrics::new(), Duration::ZERO);
        let mut answer = Err("nothing was heard of it".to_owned());
        elsewhere.run(&[errand], self.observer, &mut |_, found| {
            if let Ok(findings) = &found {
                self.keep(baseline, findings)?;
            }
            answer = found;
            Ok(())
        })?;
        Ok(answer)
    }

    fn errand(
        &self,
        [baseline, candidate]: [&Candidate; 2],
        promise: Option<Promise>,
        metrics: &Metrics,
        budget: Duration,
    ) -> Errand {
        Errand {
            folder: std::env::current_dir().unwrap_or_default(),
            tournament: self.tournament.path.clone(),
            overrides: self.tournament.overrides.clone(),
            round: self.round.file().name.clone(),
            content: self.round.content.clone(),
            baseline: baseline.clone(),
            candidate: candidate.clone(),
            promise,
            metrics: metrics.clone(),
            budget,
        }
    }

    /// What the ledger holds of a candidate, if it holds the findings of these gates up to one that stops it.
    fn known_of(&self, candidate: &Candidate, applies: impl Fn(&dyn Gate) -> bool) -> Option<Vec<Finding>> {
        let mut findings = Vec::new();
        for gate in GATES.into_iter().filter(|gate| applies(*gate)) {
            let finding = self.journal.finding(self.place_of_gate(candidate, gate.name()))?;
            let stops = finding.stops().is_some();
            findings.push(finding);
            if stops {
                break;
            }
        }
        Some(findings)
    }

    /// Records what was found elsewhere, and tells it.
    fn keep(&self, candidate: &Candidate, findings: &[Finding]) -> Result<(), TournamentError> {
        for finding in findings {
            let place = self.place_of_gate(candidate, &finding.gate);
            self.journal.write(RecordKind::Finding, place, finding)?;
            self.observer.gate_ends(&candidate.name, finding);
        }
        Ok(())
    }

    pub(super) fn place_of_gate<'p>(&'p self, candidate: &'p Candidate, gate: &'p str) -> RecordPlace<'p> {
        RecordPlace {
            pitch: Some(&candidate.name),
            gate: Some(gate),
            ..self.place()
        }
    }
}
