//! Lists of verdicts.

use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Judged, Wanted};
use gauntlet_report::{Tone, badge, glance, visible};
use gauntlet_stats::percent;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::{Links, moment};
use crate::source::{Page, Source};

/// The newest verdicts.
pub fn page(source: &Source<'_>) -> Result<Page, PageError> {
    let wanted = Wanted {
        newest: Some(source.newest),
        ..Wanted::default()
    };
    let newest = source.verdicts(&wanted)?;
    let body = html! {
        header { h1 { "Verdicts" } }
        p.quiet { "The newest " (newest.len()) " of " (source.index.count()?) "." }
        (table(&source.links, &newest))
    };
    Ok(Page::new("Verdicts", body))
}

/// Verdicts as a table.
pub fn table(links: &Links, verdicts: &[Judged]) -> Markup {
    html! {
        @if !verdicts.is_empty() {
            div.scroll tabindex="0" {
                table.list {
                    thead { tr { th { "when" } th { "task" } th { "kernel" } th { "against" } th { "verdict" } th { "speed-up" } } }
                    tbody { @for one in verdicts { (row(links, one)) } }
                }
            }
        }
    }
}

fn row(links: &Links, one: &Judged) -> Markup {
    let task = one.task.clone().unwrap_or_default();
    html! {
        tr {
            td.whole { a href=(links.to(&place(one))) { (moment(one.at)) } }
            td { a href=(links.to(&Address::Task(task.clone()))) { (task_name(&task)) } }
            td { (visible(one.kernel.as_deref().unwrap_or("–"))) }
            td data-before="against " { (visible(one.baseline.as_deref().unwrap_or("–"))) }
            td { (verdict(one)) }
            td.number { (speedup(one)) }
        }
    }
}

/// A task's name for people.
pub fn task_name(task: &str) -> String {
    match task {
        "" => "without a task".to_owned(),
        name => visible(name).into_owned(),
    }
}

/// The page of what a command found, or of the round.
pub fn place(one: &Judged) -> Address {
    match one.command.as_str() {
        "run" => Address::Round(one.run.to_string()),
        _ => Address::Verdict(one.run.to_string()),
    }
}

/// The kind of a verdict that a comparison gives.
pub fn known(one: &Judged) -> Option<Verdict> {
    let deserializer: StrDeserializer<'_, Error> = StrDeserializer::new(one.verdict.as_deref()?);
    Verdict::deserialize(deserializer).ok()
}

/// A verdict as a label, with what keeps it from being one.
pub fn verdict(one: &Judged) -> Markup {
    html! {
        @match known(one) {
            Some(verdict) => (badge(verdict)),
            None => (visible(one.verdict.as_deref().unwrap_or("–"))),
        }
        @if one.interrupted { " interrupted" }
        @if one.predicted { " " span.badge.predicted { "predicted" } }
    }
}

/// A speed-up as a picture and in words; nothing without one. Void times gain nothing.
pub fn speedup(one: &Judged) -> Markup {
    let verdict = known(one);
    let tone = verdict.map_or(Tone::Open, Tone::from);
    html! {
        @if let (Some(found), false) = (one.speedup, verdict == Some(Verdict::Blocked)) {
            (glance([found.lower, found.estimate, found.upper].map(|fraction| 1.0 + fraction), tone))
            (percent(found.estimate)) " [" (percent(found.lower)) " … " (percent(found.upper)) "]"
        }
    }
}
