//! What a command that judges found.

use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::{Judged, JudgementRecord, RunId, Wanted};
use gauntlet_report::{Rendered, visible};
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::source::{Page, Source};
use crate::{listing, noted};

/// How many others of the same task are offered.
const OTHERS: usize = 20;

/// The record of a run of a command that judges.
pub fn record(source: &Source<'_>, run: &str) -> Result<(RunId, JudgementRecord), PageError> {
    let unknown = || PageError::Unknown(format!("the ledger has no verdict of a run `{}`", visible(run)));
    let named = source.ledger.runs_named(run)?;
    let id = named
        .into_iter()
        .find(|id| id.as_str() == run)
        .ok_or_else(unknown)?;
    let record = source.ledger.judgement(&id)?.ok_or_else(unknown)?;
    Ok((id, record))
}

/// The result of a comparison; none of other commands.
pub fn comparison(record: &JudgementRecord) -> Option<ComparisonReport> {
    serde_json::from_value(record.document.clone()).ok()
}

/// What a run found, how to repeat it, and what else was found on the task.
pub fn page(source: &Source<'_>, run: &str) -> Result<Page, PageError> {
    let (id, record) = record(source, run)?;
    let (title, found) = match comparison(&record) {
        Some(report) => (report.title(), report.body()),
        None => (record.task.clone(), facts(&record)),
    };
    let wanted = Wanted {
        task: Some(record.task.clone()),
        newest: Some(OTHERS),
        ..Wanted::default()
    };
    let mut others = source.verdicts(&wanted)?;
    others.retain(|one| one.run != id);
    let task = source.links.to(&Address::Task(record.task.clone()));
    let body = html! {
        (found)
        (noted::section(source, id.as_str(), record.verdict.as_deref() == Some("regression")))
        section {
            h2 { "Once more" }
            p { "Its sources are kept beside the ledger. This writes them out with the command:" }
            pre tabindex="0" { "gauntlet ledger repeat " (id) " --into FOLDER" }
        }
        section {
            h2 { "Of the same task" }
            p { a href=(task) { (visible(&record.task)) } }
            (listing::table(&source.links, &others))
            @if source.served.is_some() && !others.is_empty() { (side_by_side(source, id.as_str(), &others)) }
        }
    };
    Ok(Page::new(title, body))
}

/// A form that puts another verdict beside this one; it works without script, and only where a server answers it.
fn side_by_side(source: &Source<'_>, run: &str, others: &[Judged]) -> Markup {
    html! {
        form method="get" action=(source.links.below("beside.html")) {
            input type="hidden" name="left" value=(run);
            label {
                "Beside another one "
                select name="right" {
                    @for one in others {
                        option value=(one.run) { (one.at.strftime("%Y-%m-%d %H:%M")) " " (visible(one.kernel.as_deref().unwrap_or("–"))) }
                    }
                }
            }
            " " button { "Show" }
        }
    }
}

/// The result of a command that compares nothing.
fn facts(record: &JudgementRecord) -> Markup {
    html! {
        header {
            h1 { (visible(&record.task)) }
            p.title { (visible(&record.command.join(" "))) }
        }
        section {
            h2 { "Found" }
            p.outcome {
                @if let Some(verdict) = &record.verdict { b { (visible(verdict)) } " " }
                (visible(&record.reason))
            }
            dl {
                @for kernel in &record.kernels { dt { "kernel" } dd { (visible(&kernel.text)) } }
                @for (file, digest) in &record.sources { dt { (visible(file)) } dd { code { (digest) } } }
            }
        }
    }
}
