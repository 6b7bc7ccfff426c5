//! The questions that earlier rounds of a tournament settled, and the records of its authors.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::forecast::{Answer, Forecasts, Scope};
use crate::outcome::{Factor, Judged};
use crate::panel::{Dimension, Judgement, Origin, PanelRecord, Ranking};
use crate::pitch::{FALLBACK, Pitch, Quantiles};
use crate::round::Round;
use crate::source::SourceChange;
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
    /// How the votes of panellists came true.
    panel: PanelRecord,
    /// What was judged so far, as participants are told.
    past: Vec<Past>,
    /// Contestants whose kernel was not right, by the problems and the name: on another kernel there is nothing to mend.
    stopped: BTreeMap<(String, String), Stopped>,
    /// By scope: each combination of kernel and device counts separately.
    rounds_without_adoption: BTreeMap<String, usize>,
}

/// A verdict, as participants are told.
#[derive(Debug, Clone, Serialize)]
pub struct Past {
    round: String,
    pitch: String,
    author: String,
    change: String,
    verdict: Verdict,
    reason: String,
    claimed: Option<Quantiles>,
    found: Option<Factor>,
    lesson: Option<String>,
}

/// A kernel that was not right.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// Its pitch.
    pub pitch: String,
    /// What was wrong.
    pub reason: String,
    /// The change to the source.
    pub change: Option<SourceChange>,
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
            panel: PanelRecord::default(),
            past: Vec::new(),
            stopped: BTreeMap::new(),
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

    /// What a panellist's vote is worth.
    pub fn credit(&self, panellist: &str) -> f64 {
        self.panel.credit(panellist)
    }

    /// Adds how the votes of panellists who act came true. Scores by the rules, and those that stand in a file, are not theirs.
    pub fn votes(&mut self, round: &Round, ranking: &Ranking, judged: &[Judged]) {
        for standing in &ranking.standings {
            let one = judged.iter().find(|one| one.name == standing.pitch);
            let Some(one) = one.filter(|one| one.verdict.is_settled()) else {
                continue;
            };
            let acts = |judgement: &&Judgement| {
                let mut panellists = round.panellists.iter();
                panellists.any(|who| who.name == judgement.judge && who.acts())
            };
            // A vote that was given, and not taken back because its terms were declined.
            let is_vote = |judgement: &&Judgement| {
                let given = |dimension| judgement.scores.of(dimension).origin == Origin::Given;
                judgement.total > 0.0 && Dimension::ALL.into_iter().any(given)
            };
            for judgement in standing.judgements.iter().filter(acts).filter(is_vote) {
                self.panel
                    .add(&judgement.judge, judgement.total, one.verdict == Verdict::Adopt);
            }
        }
    }

    /// What was judged so far.
    pub fn past(&self) -> &[Past] {
        &self.past
    }

    /// The kernel for which a contestant is stopped.
    pub fn stopped(&self, round: &Round, contestant: &str) -> Option<&Stopped> {
        self.stopped.get(&(scope(round), contestant.to_owned()))
    }

    /// A contestant has mended its kernel.
    pub fn mended(&mut self, round: &Round, contestant: &str) {
        self.stopped.remove(&(scope(round), contestant.to_owned()));
    }

    /// Rounds on these problems since the last adoption.
    pub fn rounds_without_adoption(&self, round: &Round) -> usize {
        self.rounds_without_adoption
            .get(&scope(round))
            .copied()
            .unwrap_or(0)
    }

    /// It is known what bounds the baseline.
    pub fn researched(&mut self, round: &Round) {
        self.rounds_without_adoption.insert(scope(round), 0);
    }

    /// What follows from a verdict, in its contestant's words.
    pub fn learns(&mut self, round: &str, pitch: &str, lesson: String) {
        let is_it = |past: &&mut Past| past.round == round && past.pitch == pitch;
        if let Some(past) = self.past.iter_mut().rev().find(is_it) {
            past.lesson = Some(lesson);
        }
    }

    /// Why a pitch is not heard: the same was said before, in the same words or of the same name, and was settled. What a
    /// contestant builds is compared again, with the lines that it changes.
    pub fn said_before(&self, round: &Round, pitch: &Pitch) -> Option<String> {
        let scope = scope(round);
        let said = said(pitch);
        let same = self.settled.iter().rev();
        let same = same
            .filter(|one| one.scope == scope)
            .find(|one| one.identities.contains(&said))?;
        let past = self
            .past
            .iter()
            .rev()
            .find(|past| past.round == same.round && said_by(past) == said)?;
        Some(format!(
            "the same change was judged {} in {}: {}; say in `new-evidence` what is new since then",
            past.verdict, past.round, past.reason
        ))
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
        for one in judged {
            let is_contestant = round.contestants.iter().any(|who| who.name == one.author);
            if is_contestant && matches!(one.verdict, Verdict::Incorrect | Verdict::Racy) {
                let stopped = Stopped {
                    pitch: one.name.clone(),
                    reason: one.reason.clone(),
                    change: round.changes.get(&one.name).cloned(),
                };
                self.stopped.insert((scope(round), one.author.clone()), stopped);
            }
            self.past.push(Past {
                round: round.file().name.clone(),
                pitch: one.name.clone(),
                author: one.author.clone(),
                change: one.change.clone(),
                verdict: one.verdict,
                reason: one.reason.clone(),
                claimed: one.claim.map(|claim| claim.claimed),
                found: one.factor(),
                lesson: None,
            });
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
                    .chain([said(pitch)])
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

/// What identifies a pitch by the words of its author.
fn said(pitch: &Pitch) -> String {
    saying(&pitch.author, &pitch.change)
}

fn said_by(past: &Past) -> String {
    saying(&past.author, &past.change)
}

fn saying(author: &str, change: &str) -> String {
    let words = change.split_whitespace().map(str::to_lowercase);
    format!("said by {author}: {}", words.collect::<Vec<_>>().join(" "))
}

/// A change is the same only for the same problems on the same device.
fn scope(round: &Round) -> String {
    Scope::of(round).to_string()
}
