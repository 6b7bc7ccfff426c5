//! What became of forecasts, each counted once.

use std::collections::BTreeMap;

use gauntlet_stats::{Interval, LogQuantiles};
use serde::{Deserialize, Serialize};

use super::stated::{Forecast, SETTLED};
use crate::outcome::Judged;
use crate::pitch::Quantiles;
use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Entry, RunId};

/// A forecast and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// The run in which the verdict fell.
    pub run: RunId,
    /// The round.
    pub round: String,
    /// The pitch.
    pub pitch: String,
    /// What was stated.
    pub forecast: Forecast,
    /// What it came to.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Whether any gate examined it.
    pub examined: bool,
    /// The speed-up found over the suite; none without an interval, or where the comparison was void.
    pub found: Option<Interval>,
}

/// The part of a verdict's record that forecasts are scored by.
#[derive(Deserialize)]
struct VerdictRecord {
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
    /// What a round's candidate came to; none for fallbacks, which state nothing.
    pub fn of(run: &RunId, round: &str, judged: &Judged) -> Option<Self> {
        if judged.predicted {
            return None;
        }
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

    /// The same from a verdict's record in the ledger; none for those of fallbacks, of versions that did not keep
    /// forecasts and of versions that wrote them otherwise, and none where the model alone has spoken: a prediction is no
    /// answer.
    pub fn of_entry(entry: &Entry) -> Option<Self> {
        Self::read(entry).ok()?
    }

    /// The same; an error where the record has another form than this version's.
    fn read(entry: &Entry) -> Result<Option<Self>, serde_json::Error> {
        let record = &entry.record;
        let body = VerdictRecord::deserialize(&record.body)?;
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

    /// The odds given an answer, and which of the verdicts fell; none while there is no answer.
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

    /// What makes two forecasts the same: who says what of which change where. Run again, it counts once.
    fn key(&self) -> String {
        let Forecast {
            odds, speedup, hours, ..
        } = &self.forecast;
        format!("{} {odds:?} {speedup:?} {hours}", self.question())
    }

    /// Who proposes which change where, whatever is said of it.
    pub(super) fn question(&self) -> String {
        format!("{:?} {}", self.forecast.author, self.change())
    }

    /// Which change where, whoever proposes it.
    pub(super) fn change(&self) -> String {
        format!("{} {:?}", self.forecast.scope, self.forecast.identity)
    }

    /// An answer stands against later attempts that found none.
    fn weight(&self) -> (bool, bool) {
        (self.verdict.is_settled(), self.found.is_some())
    }
}

/// Forecasts with what became of them. However often the same forecast is put to the test, it counts once, by its
/// latest answer.
#[derive(Debug, Clone, Default)]
pub struct Forecasts {
    answers: BTreeMap<String, Answer>,
    /// Verdicts of pitches whose records hold no forecast: those of versions that did not keep them.
    pub without_forecast: usize,
    /// Verdicts of pitches whose records have another form than this version reads.
    pub unreadable: usize,
}

impl Forecasts {
    /// Those of verdicts in the order of the ledger.
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

    /// Adds what became of a forecast, in place of what became of the same before.
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

    /// The speed-up found when the same forecast was put to the test, now or before.
    pub(super) fn found<'a>(&'a self, answer: &'a Answer) -> Option<&'a Interval> {
        let before = || self.answers.get(&answer.key())?.found.as_ref();
        answer.found.as_ref().or_else(before)
    }

    /// Every forecast once.
    pub fn iter(&self) -> impl Iterator<Item = &Answer> + Clone {
        self.answers.values()
    }
}
