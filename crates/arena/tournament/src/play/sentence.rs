//! From the findings about an entry to its verdict, in the form of reports and the ledger.

use gauntlet_task::Case;

use super::Player;
use super::entries::Entry;
use crate::claims::{claim_outcome, peer_outcomes};
use crate::forecast::{Forecast, Scope, UntriedFallback};
use crate::outcome::Judged;
use crate::pitch::Pitch;
use gauntlet_gates::predict;
use gauntlet_judge::Candidate;
use gauntlet_judge::ExecutorKind;
use gauntlet_judge::Finding;
use gauntlet_judge::Verdict;

impl Player<'_> {
    /// The verdict on a pitch that is not examined.
    pub(super) fn refuse(
        &self,
        entry: &Entry,
        baseline: &Candidate,
        verdict: Verdict,
        reason: String,
    ) -> Judged {
        self.judged(
            entry,
            baseline,
            // What cannot be built changes at least the name.
            self.unbuilt(entry, baseline),
            verdict,
            reason,
            Vec::new(),
        )
    }

    /// The candidate of an entry as far as it is known without building anything.
    fn unbuilt(&self, entry: &Entry, baseline: &Candidate) -> Candidate {
        match entry.fallback_change {
            Some(change) => baseline.changed(&entry.name, change),
            None => self.round.pitched(entry.pitch, baseline),
        }
    }

    /// A verdict with all its details.
    pub(super) fn judged(
        &self,
        entry: &Entry,
        baseline: &Candidate,
        candidate: Candidate,
        verdict: Verdict,
        reason: String,
        findings: Vec<Finding>,
    ) -> Judged {
        let pitch: &Pitch = entry.pitch;
        let words = self
            .round
            .setting
            .parameters
            .changes(&baseline.schedule, &candidate.schedule);
        let claims = !entry.is_fallback();
        Judged {
            name: entry.name.clone(),
            author: pitch.author.clone(),
            change: if claims {
                pitch.change.clone()
            } else {
                pitch.fallback.plan.clone()
            },
            words: words
                .iter()
                .map(ToString::to_string)
                .chain(self.changed_files(baseline, &candidate))
                .collect(),
            baseline: baseline.name.clone(),
            verdict,
            reason,
            forecast: claims.then(|| self.forecast(pitch, baseline, &candidate)),
            // A void comparison found nothing.
            claim: claims.then(|| {
                let believed = findings
                    .iter()
                    .find_map(Finding::comparison)
                    .filter(|_| verdict != Verdict::Blocked);
                claim_outcome(pitch, believed)
            }),
            peers: if claims {
                peer_outcomes(pitch, self.round.record.as_ref())
            } else {
                Vec::new()
            },
            findings,
            candidate: Some(candidate),
            gain: None,
        }
    }

    /// A pitch's forecast, with the knowledge available beforehand.
    fn forecast(&self, pitch: &Pitch, baseline: &Candidate, candidate: &Candidate) -> Forecast {
        let round = self.round;
        // A record may hold more than schedule words can express.
        let is_recorded = round.file().executor == ExecutorKind::Replay;
        let fallback = pitch.fallback.schedule.as_ref().map(|change| {
            let fallback = baseline.changed(&candidate.name, change);
            UntriedFallback {
                plan: pitch.fallback.plan.clone(),
                predicted: predict(&round.setting, baseline, &fallback),
                forbidden: !self.violations(&fallback).is_empty(),
            }
        });
        Forecast {
            author: pitch.author.clone(),
            identity: round.identity(pitch),
            scope: Scope::of(round),
            round_digest: round.digest.clone(),
            odds: pitch.odds.clone(),
            speedup: pitch.claim.speedup,
            hours: pitch.cost.hours,
            predicted: predict(&round.setting, baseline, candidate),
            forbidden: !self.violations(candidate).is_empty(),
            changes_something: is_recorded
                || round.changes.contains_key(&pitch.name)
                || baseline.differs_from(candidate),
            withdrawn: pitch.withdrawn.is_some(),
            fallback,
        }
    }

    /// The rules of the device that a candidate breaks, in words.
    pub(super) fn violations(&self, candidate: &Candidate) -> Vec<String> {
        if candidate.command.is_some() {
            // An external program's schedule is not checked.
            return Vec::new();
        }
        let broken = |case: &Case| {
            let device = &self.round.setting.device;
            let parameters = candidate.schedule_for(&case.sizes, device);
            case.sizes.violations(parameters, device)
        };
        let mut violations: Vec<_> = self
            .round
            .setting
            .benchmark_cases
            .iter()
            .flat_map(broken)
            .map(|rule| rule.to_string())
            .collect();
        violations.dedup();
        violations
    }

    /// Sums its gain and the gain of the candidate it builds on, as far as both are known.
    pub(super) fn with_gain(&self, mut verdict: Judged, entry: &Entry, judged: &[Judged]) -> Judged {
        let own = verdict
            .comparison()
            .and_then(|comparison| comparison.assessment.suite.as_ref());
        let own = own.map(|interval| interval.lower);
        let below = judged
            .iter()
            .find(|one| entry.pitch.after.as_ref() == Some(&one.name));
        verdict.gain = match below {
            Some(below) => own.zip(below.gain).map(|(own, below)| own + below),
            None => own,
        };
        verdict
    }
}
