//! The questions that earlier rounds of a tournament settled, and the records of its authors.

use std::collections::BTreeMap;

use crate::forecast::{Answer, Forecasts, Scope};
use crate::outcome::Judged;
use crate::pitch::{FALLBACK, Pitch};
use crate::round::Round;
use crate::tournament::Tournament;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Entry, RunId};

/// Verdicts of earlier rounds, for the rule against repeating a pitch, and forecasts of this and earlier runs, for the
/// panel.
#[derive(Debug)]
pub struct History {
    run: RunId,
    settled: Vec<Settled>,
    forecasts: Forecasts,
    /// This tournament's answers, in order.
    answers: Vec<Answer>,
    /// By scope: each combination of kernel and device counts separately.
    rounds_without_adoption: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Settled {
    scope: String,
    /// Any of them stands for the change.
    identities: Vec<String>,
    round: String,
    verdict: Verdict,
}

impl History {
    /// Starts with the results of other runs. Earlier runs of the same rounds are excluded: a replayed tournament must
    /// not know its own results, or the same file would be ranked differently each time.
    pub fn new(run: RunId, verdicts: Vec<Entry>, tournament: &Tournament) -> Self {
        let is_own = |entry: &Entry| {
            let digest = entry.record.body["forecast"]["round-digest"].as_str();
            tournament
                .rounds
                .iter()
                .any(|round| Some(round.digest.as_str()) == digest)
        };
        let others: Vec<_> = verdicts.into_iter().filter(|entry| !is_own(entry)).collect();
        Self {
            run,
            settled: Vec::new(),
            forecasts: Forecasts::of_entries(&others),
            answers: Vec::new(),
            rounds_without_adoption: BTreeMap::new(),
        }
    }

    /// Every known forecast with its outcome.
    pub fn forecasts(&self) -> &Forecasts {
        &self.forecasts
    }

    /// The outcomes of this tournament's forecasts so far, in order.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// The round and the verdict that settled the same change on the same problems and device.
    pub fn settled(&self, round: &Round, identities: &[String]) -> Option<(&str, Verdict)> {
        let scope = scope(round);
        let is_same = |one: &Settled| one.identities.iter().any(|one| identities.contains(one));
        let same = self
            .settled
            .iter()
            .rev()
            .find(|one| one.scope == scope && is_same(one))?;
        Some((&same.round, same.verdict))
    }

    /// Adds a round; returns the number of rounds since the last adoption.
    /// `effects` are the sources that changes led to, by pitch.
    pub fn add(
        &mut self,
        round: &Round,
        judged: &[Judged],
        effects: &BTreeMap<String, String>,
        adopted: bool,
    ) -> usize {
        for one in judged {
            if let Some(answer) = Answer::of(&self.run, &round.file().name, one) {
                self.forecasts.add(answer.clone());
                self.answers.push(answer);
            }
        }
        for pitch in &round.pitches {
            self.settle_fallback(round, pitch, judged);
            let Some(one) = judged.iter().find(|one| one.name == pitch.name) else {
                continue;
            };
            if !one.verdict.is_settled() {
                continue;
            }
            self.settled.push(Settled {
                scope: scope(round),
                identities: std::iter::once(round.identity(pitch))
                    .chain(effects.get(&pitch.name).cloned())
                    .collect(),
                round: round.file().name.clone(),
                verdict: one.verdict,
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
                identities: vec![identity],
                round: round.file().name.clone(),
                verdict: one.verdict,
            });
        }
    }
}

/// A change is the same only for the same problems on the same device.
fn scope(round: &Round) -> String {
    Scope::of(round).to_string()
}
