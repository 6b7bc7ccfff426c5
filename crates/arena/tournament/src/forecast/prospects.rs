//! What to try next, and the return on the hours spent so far.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answers::{Answer, Forecasts};
use super::roi::{Grounds, Roi};
use crate::outcome::RoundReport;
use crate::pitch::FALLBACK;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::RunId;

/// A pitch or fallback that is still worth trying.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Prospect {
    /// The latest round in which it appeared.
    pub round: String,
    /// The pitch, or its fallback.
    pub pitch: String,
    /// The author.
    pub author: String,
    /// Its verdict so far; for a fallback, the verdict on its pitch.
    pub verdict: Verdict,
    /// Why it is open.
    pub reason: String,
    /// The expected return on an hour.
    pub roi: Roi,
}

/// The return on an hour spent on an answered pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Return {
    /// The round.
    pub round: String,
    /// The pitch.
    pub pitch: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// The hours that the pitch stated.
    pub hours: f64,
    /// The return expected before the round.
    pub expected: Roi,
    /// The log speed-up found, per hour.
    pub found: f64,
}

/// Pitches from a run that are still open, best first; those that were refuted elsewhere, on another device or suite, come last. `answers` may come from any runs, in the order of their
/// verdicts; the last answer to each question counts, so a later run may have closed it. `known` holds all known
/// forecasts: a change with a settled verdict is closed, unless it was examined again with new evidence. Withdrawn
/// pitches, and changes that the candidate they are compared with already contains, are left out.
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
    let refuted = |prospect: &Prospect| refutation(prospect, known).is_some();
    prospects.sort_by(|one, other| {
        let best = other.roi.mean.total_cmp(&one.roi.mean);
        refuted(one).cmp(&refuted(other)).then(best)
    });
    for prospect in &mut prospects {
        if let Some(elsewhere) = refutation(prospect, known) {
            prospect.reason = format!("{elsewhere}; here: {}", prospect.reason);
        }
    }
    prospects
}

/// Where the author's pitch of this name was found not to be worth it, in words.
fn refutation(prospect: &Prospect, known: &Forecasts) -> Option<String> {
    let name = prospect.pitch.trim_end_matches(FALLBACK);
    let is_same = |answer: &&Answer| answer.forecast.author == prospect.author && answer.pitch == name;
    let is_refuted = |answer: &&Answer| {
        answer.verdict.is_settled() && !matches!(answer.verdict, Verdict::Adopt | Verdict::Marginal)
    };
    let refuted = known.iter().filter(is_same).find(is_refuted)?;
    Some(format!("{} in {}", refuted.verdict, refuted.round))
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

/// A fallback is tried after its pitch was examined and failed; until then it is open too. It states neither odds nor a
/// speed-up, so its estimate uses only the model and its pitch's hours.
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

/// The returns of answered pitches with a speed-up, the best per hour first.
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
    let mut returns: Vec<_> = rounds.iter().flat_map(of_round).collect();
    returns.sort_by(|one, other| other.found.total_cmp(&one.found));
    returns
}
