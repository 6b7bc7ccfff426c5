//! What to try next, and what the hours brought that were spent.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::answers::{Answer, Forecasts};
use super::roi::{Grounds, Roi};
use crate::outcome::RoundReport;
use crate::pitch::FALLBACK;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::RunId;

/// Something that is still worth a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prospect {
    /// The round in which it came up last.
    pub round: String,
    /// The pitch, or its fallback.
    pub pitch: String,
    /// Who pitches it.
    #[serde(rename = "contestant")]
    pub author: String,
    /// What became of it so far; of its pitch, if it is a fallback.
    pub verdict: Verdict,
    /// Why it is open.
    pub reason: String,
    /// What an hour of it is expected to bring.
    pub roi: Roi,
}

/// What an hour spent on an answered pitch brought.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Return {
    /// The round.
    pub round: String,
    /// The pitch.
    pub pitch: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// The hours that it was said to cost.
    pub hours: f64,
    /// What was expected before the round.
    pub expected: Roi,
    /// The log speed-up found, an hour.
    pub found: f64,
}

/// What came up in a run and is still open, best first. `answers` are of any runs, in the order in which they fell; the
/// last of each question counts, so that a later run may have closed it. `known` is all that is known, and a change that
/// it holds a settled verdict of is open no more, unless it was examined again with new evidence. What was withdrawn, and
/// what the control already has, is no longer on offer.
pub fn prospects(answers: &[Answer], run: &RunId, known: &Forecasts) -> Vec<Prospect> {
    let came_up: BTreeSet<String> = answers
        .iter()
        .filter(|answer| answer.run == *run)
        .map(Answer::question)
        .collect();
    let settled: BTreeSet<String> = known
        .iter()
        .filter(|answer| answer.verdict.is_settled())
        .map(Answer::change)
        .collect();
    let last: BTreeMap<String, &Answer> = answers.iter().map(|answer| (answer.question(), answer)).collect();
    let is_open = |answer: &&Answer| {
        let is_answered =
            answer.verdict.is_settled() || (settled.contains(&answer.change()) && !answer.examined);
        !is_answered && answer.forecast.changes_something && !answer.forecast.withdrawn
    };
    let mut prospects: Vec<Prospect> = last
        .into_iter()
        .filter_map(|(question, answer)| came_up.contains(&question).then_some(answer))
        .filter(is_open)
        .flat_map(|answer| [of_pitch(answer, known), of_fallback(answer, known)])
        .flatten()
        .collect();
    prospects.sort_by(|one, other| other.roi.mean.total_cmp(&one.roi.mean));
    prospects
}

fn of_pitch(answer: &Answer, known: &Forecasts) -> Option<Prospect> {
    let forecast = &answer.forecast;
    let roi = Grounds {
        odds: Some(&forecast.odds),
        claimed: Some(forecast.speedup),
        predicted: forecast.predicted,
        found: known.found(answer),
        forbidden: forecast.forbidden,
        hours: forecast.hours,
        record: known.record_of(&forecast.author),
    }
    .roi()?;
    Some(prospect(answer, answer.pitch.clone(), answer.reason.clone(), roi))
}

/// A fallback is tried when its pitch was examined and failed; until then it is open too. It states neither odds nor
/// a speed-up, so that only the model speaks for it, and its pitch's hours are taken.
fn of_fallback(answer: &Answer, known: &Forecasts) -> Option<Prospect> {
    let was_tried = !matches!(answer.verdict, Verdict::Aborted | Verdict::Blocked);
    let fallback = answer.forecast.fallback.as_ref().filter(|_| !was_tried)?;
    let roi = Grounds {
        odds: None,
        claimed: None,
        predicted: fallback.predicted,
        found: None,
        forbidden: fallback.forbidden,
        hours: answer.forecast.hours,
        record: known.record_of(&answer.forecast.author),
    }
    .roi()?;
    let reason = format!("not tried: {}", fallback.plan);
    Some(prospect(
        answer,
        format!("{}{FALLBACK}", answer.pitch),
        reason,
        roi,
    ))
}

fn prospect(answer: &Answer, pitch: String, reason: String, roi: Roi) -> Prospect {
    Prospect {
        round: answer.round.clone(),
        pitch,
        author: answer.forecast.author.clone(),
        verdict: answer.verdict,
        reason,
        roi,
    }
}

/// What came of the answered pitches of which a speed-up was found, the best hours first.
pub fn returns(rounds: &[RoundReport]) -> Vec<Return> {
    let of_round = |round: &'_ RoundReport| {
        let returns = round.judged.iter().filter_map(|judged| {
            let standing = round
                .ranking
                .standings
                .iter()
                .find(|standing| standing.pitch == judged.name)?;
            let expected = standing.roi.filter(|_| judged.verdict.is_settled())?;
            Some(Return {
                round: round.name.clone(),
                pitch: judged.name.clone(),
                verdict: judged.verdict,
                hours: expected.hours,
                expected,
                found: judged.found()?.estimate / expected.hours,
            })
        });
        returns.collect::<Vec<_>>()
    };
    let mut returns: Vec<_> = rounds
        .iter()
        .filter(|round| !round.predicted)
        .flat_map(of_round)
        .collect();
    returns.sort_by(|one, other| other.found.total_cmp(&one.found));
    returns
}
