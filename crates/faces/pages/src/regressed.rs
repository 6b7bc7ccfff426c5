//! The page of kernels that became slower, with the acknowledgement of each.

use gauntlet_history::git::short;
use gauntlet_judge::ledger::{Judged, Wanted};
use gauntlet_report::visible;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::moment;
use crate::listing::table;
use crate::noted::told;
use crate::source::{Page, Source};

/// How far back the list goes unless something else is asked.
const DAYS: i64 = 30;

/// The least letters by which a commit is known.
const LEAST_OF_A_COMMIT: usize = 7;

/// Since when, and what that is.
struct Since {
    at: Timestamp,
    what: String,
}

/// Kernels that were measured and found to be slower, the newest first.
pub fn page(source: &Source<'_>, since: Option<&str>) -> Result<Page, PageError> {
    let all = source.verdicts(&Wanted::default())?;
    let since = match since {
        None => Since {
            at: Timestamp::now() - SignedDuration::from_hours(24 * DAYS),
            what: format!("in the last {DAYS} days"),
        },
        Some(text) => asked(text.trim(), &all)?,
    };
    let is_slower = |one: &&Judged| {
        let is_slower = one.verdict.as_deref() == Some("regression");
        one.at >= since.at && is_slower && !one.predicted && !one.interrupted
    };
    let found: Vec<Judged> = all.iter().filter(is_slower).cloned().collect();
    let is_known = |one: &Judged| source.notes.acknowledged(one.run.as_str()).is_some();
    let (known, open): (Vec<Judged>, Vec<Judged>) = found.into_iter().partition(is_known);
    let body = html! {
        header { h1 { "Regressed" } }
        @if source.served.is_some() { (form(source)) }
        p.quiet {
            @if open.is_empty() && known.is_empty() { "No kernel was found to be slower " (since.what) "." }
            @else { "Found to be slower " (since.what) ", the newest first." }
        }
        (table(&source.links, &open))
        (notes_on(source, &open))
        @if !known.is_empty() {
            section {
                h2 { "Acknowledged" }
                (table(&source.links, &known))
                (notes_on(source, &known))
            }
        }
    };
    Ok(Page::new("Regressed", body))
}

/// What is asked: a day, or the beginning of a commit's name, which stands for the moment when it was first judged.
fn asked(text: &str, all: &[Judged]) -> Result<Since, PageError> {
    if let Ok(day) = text.parse::<Date>() {
        let at = day.to_zoned(TimeZone::UTC).map(|start| start.timestamp());
        let at = at.map_err(|error| PageError::Unknown(error.to_string()))?;
        return Ok(Since {
            at,
            what: format!("since {day}"),
        });
    }
    let is_it = |one: &&Judged| {
        let mut commits = [&one.commit, &one.baseline_commit].into_iter().flatten();
        text.len() >= LEAST_OF_A_COMMIT && commits.any(|commit| commit.id.starts_with(text))
    };
    // The newest come first.
    let first = all.iter().rfind(is_it).ok_or_else(|| {
        PageError::Unknown(format!(
            "`{}` is neither a day, such as 2026-03-14, nor the name of a commit that was judged",
            visible(text)
        ))
    })?;
    Ok(Since {
        at: first.at,
        what: format!("since commit {} was first judged", short(text)),
    })
}

fn form(source: &Source<'_>) -> Markup {
    html! {
        form method="get" action=(source.links.below("regressed.html")) {
            label { "Since a day or a commit " input name="since" required placeholder="2026-03-14"; }
            " " button { "Show" }
        }
    }
}

/// What people say of these verdicts.
fn notes_on(source: &Source<'_>, verdicts: &[Judged]) -> Markup {
    html! {
        @for one in verdicts {
            @let notes: Vec<_> = source.notes.on(one.run.as_str()).collect();
            @if !notes.is_empty() {
                p { "Of " a href=(source.links.to(&Address::Verdict(one.run.to_string()))) { (visible(one.kernel.as_deref().unwrap_or("a kernel"))) ", " (moment(one.at)) } ":" }
                @for note in notes { (told(note)) }
            }
        }
    }
}
