//! Lists of verdicts.

use gauntlet_judge::Verdict;
use gauntlet_judge::ledger::{Judged, Wanted};
use gauntlet_report::{Tone, badge, glance, visible};
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use crate::address::{Address, Filter, slug};
use crate::error::PageError;
use crate::frame::{Links, moment};
use crate::pages::{Page, Source};

/// Verdicts on a page of a list.
const MOST: usize = 100;

/// A list of the verdicts that fit.
pub fn page(source: &Source<'_>, filter: &Filter) -> Result<Page, PageError> {
    let wanted = Wanted {
        task: filter.task.clone(),
        kernel: filter.kernel.clone(),
        client: filter.client.clone(),
        newest: None,
    };
    let mut fitting = source.verdicts(&wanted)?;
    if let Some(verdict) = &filter.verdict {
        fitting.retain(|one| one.verdict.as_ref() == Some(verdict));
    }
    let count = fitting.len();
    let shown: Vec<Judged> = fitting.into_iter().skip(filter.skip).take(MOST).collect();
    let until = filter.skip + shown.len();
    let at = |skip: usize| {
        source.links.to(&Address::Verdicts(Filter {
            skip,
            ..filter.clone()
        }))
    };
    let served = source.links.are_served();
    let body = html! {
        header { h1 { "Verdicts" } }
        @if served { (form(filter)) }
        p.quiet {
            @if count == 0 { "No verdict fits." }
            @else { (filter.skip + 1) " to " (until) " of " (count) ", the newest first." }
        }
        (table(&source.links, &shown))
        @if served {
            p {
                @if filter.skip > 0 { a rel="prev" href=(at(filter.skip.saturating_sub(MOST))) { "newer" } " " }
                @if until < count { a rel="next" href=(at(until)) { "older" } }
            }
        }
    };
    Ok(Page {
        title: "Verdicts".to_owned(),
        body,
    })
}

fn form(filter: &Filter) -> Markup {
    let field = |name: &str, title: &str, value: &Option<String>| {
        html! { label { (title) input name=(name) value=[value.as_ref()]; } }
    };
    html! {
        form action="/verdicts" {
            (field("task", "task", &filter.task))
            (field("kernel", "kernel (digest)", &filter.kernel))
            (field("client", "client", &filter.client))
            (field("verdict", "verdict", &filter.verdict))
            button { "show" }
        }
    }
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
    let task = one.task.as_deref().unwrap_or("–");
    html! {
        tr {
            td.whole { a href=(links.to(&place(one))) { (moment(one.at)) } }
            td { a href=(links.to(&Address::Task(slug(task)))) { (visible(task)) } }
            td { (visible(one.kernel.as_deref().unwrap_or("–"))) }
            td data-before="against " { (visible(one.baseline.as_deref().unwrap_or("–"))) }
            td { (verdict(one)) }
            td.number { (speedup(one)) }
        }
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

/// A fraction in per cent.
pub fn percent(fraction: f64) -> String {
    gauntlet_stats::percent(fraction)
}
