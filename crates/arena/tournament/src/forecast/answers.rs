//! Outcomes of forecasts, each counted once.

use std::collections::BTreeMap;

use gauntlet_stats::{Interval, LogQuantiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stated::{Forecast, SETTLED};
use crate::outcome::Judged;
use crate::pitch::Quantiles;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Entry, RunId};

/// A forecast and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// The run that gave the verdict.
    pub run: RunId,
    /// The round.
    pub round: String,
    /// The pitch.
    pub pitch: String,
    /// The forecast.
    pub forecast: Forecast,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
    /// Whether any gate examined it.
    pub examined: bool,
    /// The speed-up found over the suite; none without an interval, or if the comparison was void.
    pub found: Option<Interval>,
}

/// The part of a [`VerdictRecord`](crate::VerdictRecord) that is needed to score forecasts: a record whose other parts
/// have another form still counts.
#[derive(Deserialize)]
struct Scored {
    verdict: Verdict,
    reason: String,
    forecast: Option<Forecast>,
    #[serde(default)]
    examined: bool,
    #[serde(default)]
    predicted: bool,
    found: Option<Interval>,
}

impl Answer {
    /// The answer from a round's candidate; none for fallbacks, which state no forecast.
    pub fn of(run: &RunId, round: &str, judged: &Judged) -> Option<Self> {
        Some(Self {
            run: run.clone(),
            round: round.to_owned(),
            pitch: judged.name.clone(),
            forecast: judged.forecast.clone()?,
            verdict: judged.verdict,
            reason: judged.reason.clone(),
            examined: !judged.findings.is_empty(),
            found: judged.found().cloned(),
        })
    }

    /// The answer from a verdict's record in the ledger. None for fallbacks, for records of versions that stored no
    /// forecasts or stored them in another form, and for verdicts that come from the model alone: a prediction is no
    /// answer.
    pub fn of_entry(entry: &Entry) -> Option<Self> {
        Self::read(entry).ok()?
    }

    /// The same; an error if the record has another form than this version's.
    fn read(entry: &Entry) -> Result<Option<Self>, serde_json::Error> {
        let record = &entry.record;
        let body = Scored::deserialize(&record.body)?;
        let named = record.round.clone().zip(record.pitch.clone());
        let stated = body.forecast.filter(|_| !body.predicted).zip(named);
        Ok(stated.map(|(forecast, (round, pitch))| Self {
            run: record.run.clone(),
            round,
            pitch,
            forecast,
            verdict: body.verdict,
            reason: body.reason,
            examined: body.examined,
            found: body.found,
        }))
    }

    /// The stated odds, and which of the settled verdicts was given; none while there is no answer.
    pub(super) fn settled_odds(&self) -> Option<(Vec<f64>, usize)> {
        let happened = SETTLED.iter().position(|verdict| *verdict == self.verdict)?;
        Some((self.forecast.odds.given_an_answer(), happened))
    }

    /// The claimed quantiles and the interval found, as log speed-ups.
    pub(super) fn tested_speedup(&self) -> Option<(LogQuantiles, &Interval)> {
        let Quantiles { q10, q50, q90 } = self.forecast.speedup;
        let claimed = LogQuantiles {
            q10: q10.ln(),
            q50: q50.ln(),
            q90: q90.ln(),
        };
        Some((claimed, self.found.as_ref()?))
    }

    /// The identity of a forecast: author, statement, change and environment. A forecast that is run again counts once.
    fn key(&self) -> String {
        let Forecast {
            odds, speedup, hours, ..
        } = &self.forecast;
        format!("{} {odds:?} {speedup:?} {hours}", self.question())
    }

    /// The author, change and environment, whatever is forecast about it.
    pub(super) fn question(&self) -> String {
        format!("{:?} {}", self.forecast.author, self.change())
    }

    /// The change and environment, for any author.
    pub(super) fn change(&self) -> String {
        format!("{} {:?}", self.forecast.scope, self.forecast.identity)
    }

    /// An answer is kept even if a later attempt found none.
    fn weight(&self) -> (bool, bool) {
        (self.verdict.is_settled(), self.found.is_some())
    }
}

/// Forecasts with their outcomes. However often the same forecast is tested, it counts once, by its latest answer.
#[derive(Debug, Clone, Default)]
pub struct Forecasts {
    answers: BTreeMap<String, Answer>,
    /// Verdicts whose records hold no forecast, from versions that did not store them.
    pub without_forecast: usize,
    /// Verdicts whose records have another form than this version reads.
    pub unreadable: usize,
}

impl Forecasts {
    /// The forecasts of these verdicts, given in the order of the ledger.
    pub fn of_entries(entries: &[Entry]) -> Self {
        let mut forecasts = Self::default();
        for entry in entries {
            let body = &entry.record.body;
            // A fallback claims nothing, and a prediction is no answer.
            let counts = !body["claim"].is_null() && body["predicted"] != true;
            match Answer::read(entry) {
                Ok(Some(answer)) => forecasts.add(answer),
                Ok(None) => forecasts.without_forecast += usize::from(counts),
                Err(_) => forecasts.unreadable += usize::from(counts),
            }
        }
        forecasts
    }

    /// Adds the outcome of a forecast, replacing any earlier outcome of the same forecast.
    pub fn add(&mut self, answer: Answer) {
        let key = answer.key();
        let stands = self
            .answers
            .get(&key)
            .is_some_and(|before| before.weight() > answer.weight());
        if !stands {
            self.answers.insert(key, answer);
        }
    }

    /// The speed-up found when the same forecast was tested, now or before.
    pub(super) fn found<'a>(&'a self, answer: &'a Answer) -> Option<&'a Interval> {
        let before = || self.answers.get(&answer.key())?.found.as_ref();
        answer.found.as_ref().or_else(before)
    }

    /// Every forecast once.
    pub fn iter(&self) -> impl Iterator<Item = &Answer> + Clone {
        self.answers.values()
    }
}
