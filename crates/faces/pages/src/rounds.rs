//! Rounds and tournaments, and how good the forecasts were.

use std::collections::BTreeMap;

use anstream::adapter::strip_str;
use gauntlet_judge::ledger::{Judged, RunId, Wanted};
use gauntlet_report::{Rendered, visible};
use gauntlet_tournament::TournamentReport;
use gauntlet_tournament::forecast::Forecasts;
use maud::html;

use crate::address::Address;
use crate::error::PageError;
use crate::frame::moment;
use crate::source::{Page, Source};

/// Columns of a table that is laid out as text.
const COLUMNS: usize = 100;

/// All runs of rounds, the newest first.
pub fn list(source: &Source<'_>) -> Result<Page, PageError> {
    let runs = runs(source)?;
    let mut rows = Vec::new();
    for (run, verdicts) in runs.iter().rev() {
        rows.push((source.ledger.run(run)?, verdicts));
    }
    let adopted = |verdicts: &[Judged]| {
        let adopted = verdicts
            .iter()
            .filter(|one| one.verdict.as_deref() == Some("adopt"));
        adopted.count()
    };
    let body = html! {
        header { h1 { "Rounds" } }
        @if rows.is_empty() { p { "No round was played yet." } }
        @else {
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "when" } th { "file" } th { "verdicts" } th { "adopted" } th { "ended" } } }
                    tbody {
                        @for (summary, verdicts) in &rows {
                            tr {
                                td.whole { a href=(source.links.to(&Address::Round(summary.id.to_string()))) { (moment(summary.started)) } }
                                td { (visible(&summary.start.file)) }
                                td.number { (verdicts.len()) }
                                td.number { (adopted(verdicts)) }
                                td.whole { @match summary.ended { Some(at) => (moment(at)), None => "cut short or running" } }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page::new("Rounds", body))
}

/// The runs that gave verdicts on pitches, in the order of their names, which is that of their beginnings.
fn runs(source: &Source<'_>) -> Result<BTreeMap<RunId, Vec<Judged>>, PageError> {
    let mut runs: BTreeMap<RunId, Vec<Judged>> = BTreeMap::new();
    for one in source.verdicts(&Wanted::default())? {
        if one.command == "run" {
            runs.entry(one.run.clone()).or_default().push(one);
        }
    }
    Ok(runs)
}

/// A run of rounds as its report.
pub fn page(source: &Source<'_>, run: &str) -> Result<Page, PageError> {
    let unknown = || {
        PageError::Unknown(format!(
            "the ledger has no round that was played as run `{}`",
            visible(run)
        ))
    };
    let named = source.ledger.runs_named(run)?;
    let id = named
        .into_iter()
        .find(|id| id.as_str() == run)
        .ok_or_else(unknown)?;
    let (summary, records) = (source.ledger.run(&id)?, source.ledger.records(&id)?);
    let report = TournamentReport::of_run(&summary, &records, &source.ledger.verdicts()?)
        .map_err(|error| PageError::Unknown(format!("run `{}` cannot be shown: {error}", visible(run))))?;
    Ok(Page {
        is_live: summary.ended.is_none(),
        ..Page::new(report.title(), report.body())
    })
}

/// How good the forecasts were, of all rounds.
pub fn forecasters(source: &Source<'_>) -> Result<Page, PageError> {
    let scored = Forecasts::of_entries(&source.ledger.verdicts()?).forecasters();
    let text = gauntlet_report::forecasters(&scored, COLUMNS);
    let body = html! {
        header { h1 { "Forecasters" } }
        pre tabindex="0" { (strip_str(&text).to_string()) }
    };
    Ok(Page::new("Forecasters", body))
}
