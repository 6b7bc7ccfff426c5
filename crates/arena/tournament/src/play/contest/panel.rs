//! The panel: questions, votes, and deals about terms.

use std::collections::BTreeMap;

use gauntlet_judge::{AbortRule, Candidate};
use serde_json::{Value, json};

use super::super::history::History;
use super::{Inquiry, Player, Situation, accepted};
use crate::error::TournamentError;
use crate::messages::{Answering, Asking, Deal, Phase, Question, Vote, Voting};
use crate::round::{GivenScores, PanelMember, Participant, Round};

/// A panellist's question and a contestant's answer.
struct Exchange {
    from: String,
    question: Question,
    text: String,
}

/// Terms of a panellist for a pitch.
#[derive(Clone)]
struct Terms {
    from: String,
    rules: Vec<AbortRule>,
    conditional: bool,
}

impl Player<'_> {
    /// The round with the panellists' scores, and their terms where they are accepted.
    pub(in crate::play) fn voted(
        &self,
        baseline: &Candidate,
        situation: &Situation,
        history: &History,
    ) -> Result<Round, TournamentError> {
        let mut round = self.round.clone();
        let flags = self.rank(baseline, history).flags;
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let known = json!({ "pitches": round.pitches, "flags": flags });
        let exchanges = self.exchanges(&known, situation)?;
        let mut terms: BTreeMap<String, Vec<Terms>> = BTreeMap::new();
        let mut members = Vec::new();
        for who in &self.round.panellists {
            let votes = match who.acts() && !round.pitches.is_empty() {
                true => self.votes_of(who, &known, &exchanges, situation)?,
                false => Vec::new(),
            };
            for vote in votes.iter().filter(|vote| !vote.terms.is_empty()) {
                terms.entry(vote.pitch.clone()).or_default().push(Terms {
                    from: who.name.clone(),
                    rules: vote.terms.clone(),
                    conditional: vote.conditional,
                });
            }
            members.push(PanelMember {
                name: who.name.clone(),
                weights: who.weights,
                scores: votes
                    .iter()
                    .map(|vote| (vote.pitch.clone(), vote.scores))
                    .collect(),
            });
        }
        for (pitch, terms) in terms {
            self.deal(&mut round, &mut members, &pitch, &terms, situation)?;
        }
        round.source.value.judge.extend(members);
        Ok(round)
    }

    fn exchanges(&self, known: &Value, situation: &Situation) -> Result<Vec<Exchange>, TournamentError> {
        let mut exchanges = Vec::new();
        let has_pitched = |name: &str| self.round.pitches.iter().any(|pitch| pitch.author == name);
        let asked_ones = || self.round.contestants.iter().filter(|one| has_pitched(&one.name));
        if asked_ones().next().is_none() {
            return Ok(exchanges);
        }
        for who in self.voters() {
            let inquiry = Inquiry {
                who,
                phase: Phase::Question,
                pitch: None,
                more: known.clone(),
            };
            let answer = self.asked(
                &inquiry,
                situation,
                None,
                &|asking: Asking| match &asking.question {
                    Some(question) if !asked_ones().any(|one| one.name == question.to) => Err(format!(
                        "`{}` is no contestant who has pitched in this round",
                        question.to
                    )),
                    _ => Ok(json!(asking)),
                },
            )?;
            let asking: Option<Asking> = answer.map(accepted).transpose()?;
            let Some(question) = asking.and_then(|asking| asking.question) else {
                continue;
            };
            let Some(contestant) = asked_ones().find(|one| one.name == question.to) else {
                continue;
            };
            let inquiry = Inquiry {
                who: contestant,
                phase: Phase::Answer,
                pitch: Some(&who.name),
                more: json!({ "question": { "from": who.name, "text": question.text } }),
            };
            let answer = self.asked(&inquiry, situation, None, &|answer: Answering| Ok(json!(answer)))?;
            let answer: Option<Answering> = answer.map(accepted).transpose()?;
            exchanges.push(Exchange {
                from: who.name.clone(),
                question,
                text: answer.map_or_else(|| "(no answer)".to_owned(), |answer| answer.text),
            });
        }
        Ok(exchanges)
    }

    fn votes_of(
        &self,
        who: &Participant,
        known: &Value,
        exchanges: &[Exchange],
        situation: &Situation,
    ) -> Result<Vec<Vote>, TournamentError> {
        let answers = exchanges.iter().map(|one| {
            json!({ "from": one.from, "to": one.question.to, "question": one.question.text, "text": one.text })
        });
        let mut more = known.clone();
        more["answers"] = answers.collect();
        let inquiry = Inquiry {
            who,
            phase: Phase::Vote,
            pitch: None,
            more,
        };
        let answer = self.asked(&inquiry, situation, None, &|voting: Voting| {
            for (index, vote) in voting.votes.iter().enumerate() {
                if !self.round.pitches.iter().any(|pitch| pitch.name == vote.pitch) {
                    return Err(format!("`{}` is not pitched in this round", vote.pitch));
                }
                if voting.votes[..index]
                    .iter()
                    .any(|other| other.pitch == vote.pitch)
                {
                    return Err(format!("there are two votes on `{}`", vote.pitch));
                }
                let scores = [
                    vote.scores.speedup,
                    vote.scores.feasibility,
                    vote.scores.risk,
                    vote.scores.quality,
                    vote.scores.printed,
                ];
                if scores
                    .into_iter()
                    .flatten()
                    .any(|score| !(0.0..=10.0).contains(&score))
                {
                    return Err(format!("a score for `{}` lies outside 0…10", vote.pitch));
                }
            }
            Ok(json!(voting))
        })?;
        let voting: Option<Voting> = answer.map(accepted).transpose()?;
        Ok(voting.map_or_else(Vec::new, |voting| voting.votes))
    }

    /// Puts terms to the contestant of a pitch. Nobody can be asked about the pitch of a person, which the terms bind at once.
    fn deal(
        &self,
        round: &mut Round,
        members: &mut [PanelMember],
        name: &str,
        terms: &[Terms],
        situation: &Situation,
    ) -> Result<(), TournamentError> {
        let Some(pitch) = round.pitches.iter_mut().find(|pitch| pitch.name == name) else {
            return Ok(());
        };
        let contestant = self.round.contestants.iter().find(|one| one.name == pitch.author);
        let deal = match contestant {
            None => Deal::Accept(true),
            Some(who) => {
                let offered = terms.iter().flat_map(|one| {
                    one.rules.iter().map(|rule| {
                        json!({ "from": one.from, "when": rule.when, "why": rule.why, "conditional": one.conditional })
                    })
                });
                let inquiry = Inquiry {
                    who,
                    phase: Phase::Deal,
                    pitch: Some(name),
                    more: json!({ "pitch": pitch, "terms": offered.collect::<Vec<_>>() }),
                };
                let answer = self.asked(&inquiry, situation, None, &|deal: Deal| Ok(json!(deal)))?;
                answer.map(accepted).transpose()?.unwrap_or(Deal::Accept(false))
            }
        };
        match deal {
            Deal::Withdraw(why) => pitch.withdrawn = Some(why),
            Deal::Accept(true) => {
                for one in terms {
                    pitch.abort.extend(one.rules.iter().map(|rule| AbortRule {
                        when: rule.when.clone(),
                        why: format!("{} (a term of {})", rule.why, one.from),
                    }));
                }
            }
            Deal::Accept(false) => {
                let conditional = terms.iter().filter(|one| one.conditional);
                for from in conditional.map(|one| &one.from) {
                    if let Some(member) = members.iter_mut().find(|member| member.name == *from) {
                        member.scores.insert(name.to_owned(), NONE);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The scores of a conditional vote whose terms are declined.
const NONE: GivenScores = GivenScores {
    speedup: Some(0.0),
    feasibility: Some(0.0),
    risk: Some(0.0),
    quality: Some(0.0),
    printed: None,
};
