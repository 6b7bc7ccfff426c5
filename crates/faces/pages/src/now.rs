//! What runs and waits, and what was found last.

use gauntlet_judge::ledger::Wanted;
use gauntlet_queue::{Judgement, State, Status};
use gauntlet_report::visible;
use maud::{Markup, html};

use crate::error::PageError;
use crate::frame::moment;
use crate::listing::table;
use crate::pages::{Page, Source};

/// How many verdicts are shown.
const NEWEST: usize = 15;

/// The most tickets that are looked at.
const TICKETS: usize = 500;

/// The first page.
pub fn page(source: &Source<'_>) -> Result<Page, PageError> {
    let wanted = Wanted {
        newest: Some(NEWEST),
        ..Wanted::default()
    };
    let newest = source.verdicts(&wanted)?;
    let body = html! {
        header { h1 { "Now" } }
        @if let Some(queue) = source.queue { (tickets(&queue.history(None, None, TICKETS)?)) }
        section {
            h2 { "Found last" }
            @if newest.is_empty() { p { "Nothing was judged yet. " code { "gauntlet compare" } " leaves a record, and every command that judges." } }
            (table(&source.links, &newest))
        }
    };
    Ok(Page {
        title: "Now".to_owned(),
        body,
    })
}

/// What runs, and what waits, the oldest first.
fn tickets(all: &[Status]) -> Markup {
    let of = |state: State| all.iter().rev().filter(move |one| current(one) == state);
    html! {
        section data-live="" {
            h2 { "Running" }
            @if of(State::Running).next().is_none() { p { "Nothing." } }
            @else {
                div.scroll tabindex="0" {
                    table {
                        thead { tr { th { "ticket" } th { "client" } th { "judgement" } th { "since" } th { "attempt" } th { "by" } } }
                        tbody {
                            @for one in of(State::Running) {
                                @let attempt = one.attempts.last();
                                tr {
                                    td.whole { (one.id) }
                                    td { (visible(&one.client)) }
                                    td { (words(&one.judgement)) }
                                    td.whole { @if let Some(attempt) = attempt { (moment(attempt.began)) } }
                                    td.number { @if let Some(attempt) = attempt { (attempt.number) } }
                                    td { @if let Some(attempt) = attempt { (visible(&attempt.worker)) } }
                                }
                            }
                        }
                    }
                }
            }
            h2 { "Waiting" }
            @if of(State::Queued).next().is_none() { p { "Nothing." } }
            @else {
                p.quiet { (of(State::Queued).count()) " tickets. Clients take turns, and checks go first." }
                div.scroll tabindex="0" {
                    table {
                        thead { tr { th { "ticket" } th { "client" } th { "judgement" } th { "since" } } }
                        tbody {
                            @for one in of(State::Queued) {
                                tr {
                                    td.whole { (one.id) }
                                    td { (visible(&one.client)) }
                                    td { (words(&one.judgement)) @if one.confirmation.is_some() { " (a second time)" } }
                                    td.whole { (moment(one.created)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where a ticket stands: one that was adopted waits or runs once more.
fn current(one: &Status) -> State {
    match &one.confirmation {
        Some(second) => second.state,
        None => one.state,
    }
}

fn words(judgement: &Judgement) -> String {
    let text = format!(
        "{} {} on {}",
        judgement.command.name(),
        judgement.kernels.join(" "),
        judgement.task
    );
    visible(&text).into_owned()
}
