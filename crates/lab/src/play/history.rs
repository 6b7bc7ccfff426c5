//! What earlier rounds of a tournament settled.

use std::collections::BTreeMap;

use crate::outcome::Judged;
use crate::panel::{self, PastClaim};
use crate::pitch::{FALLBACK, Pitch};
use crate::round::Round;
use crate::verdict::Verdict;

/// Verdicts of earlier rounds, for the rule on pitching again and for the panel.
#[derive(Debug, Default)]
pub struct History {
    settled: Vec<Settled>,
    /// By scope: another kernel on another device is another practice.
    rounds_without_adoption: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Settled {
    scope: String,
    identity: String,
    /// None for a fallback, which claims nothing.
    contestant: Option<String>,
    round: String,
    verdict: Verdict,
    claim: Option<PastClaim>,
}

impl History {
    /// What became of a contestant's pitches so far.
    pub fn of(&self, contestant: &str) -> panel::History {
        let own = || {
            self.settled
                .iter()
                .filter(|one| one.contestant.as_deref() == Some(contestant))
        };
        panel::History {
            settled: own().count(),
            adopted: own().filter(|one| one.verdict == Verdict::Adopt).count(),
            claims: own().filter_map(|one| one.claim).collect(),
        }
    }

    /// The round and the verdict that settled the same change on the same problems and device.
    pub fn settled(&self, round: &Round, pitch: &Pitch) -> Option<(&str, Verdict)> {
        let (scope, identity) = (scope(round), pitch.identity());
        let same = self
            .settled
            .iter()
            .rev()
            .find(|one| one.scope == scope && one.identity == identity)?;
        Some((&same.round, same.verdict))
    }

    /// Adds a round; returns how many rounds there have now been without an adoption.
    pub fn add(&mut self, round: &Round, judged: &[Judged], adopted: bool) -> usize {
        for pitch in &round.pitches {
            self.settle_fallback(round, pitch, judged);
            let Some(one) = judged.iter().find(|one| one.name == pitch.name) else {
                continue;
            };
            if !one.verdict.is_settled() {
                continue;
            }
            let measured = one.claim.and_then(|claim| claim.found);
            self.settled.push(Settled {
                scope: scope(round),
                identity: pitch.identity(),
                contestant: Some(pitch.contestant.clone()),
                round: round.file().name.clone(),
                verdict: one.verdict,
                claim: measured.map(|measured| PastClaim {
                    claimed: pitch.claim.speedup.q50,
                    measured,
                }),
            });
        }
        let rounds = self.rounds_without_adoption.entry(scope(round)).or_default();
        *rounds = if adopted || round.file().research {
            0
        } else {
            *rounds + 1
        };
        *rounds
    }

    fn settle_fallback(&mut self, round: &Round, pitch: &Pitch, judged: &[Judged]) {
        let name = format!("{}{FALLBACK}", pitch.name);
        let tried = judged
            .iter()
            .find(|one| one.name == name && one.verdict.is_settled());
        if let (Some(one), Some(identity)) = (tried, pitch.identity_of_fallback()) {
            self.settled.push(Settled {
                scope: scope(round),
                identity,
                contestant: None,
                round: round.file().name.clone(),
                verdict: one.verdict,
                claim: None,
            });
        }
    }
}

/// A change is the same only for the same problems on the same device.
fn scope(round: &Round) -> String {
    let file = round.file();
    format!("{:?} {} {}", file.executor, round.device.name, file.suite)
}
