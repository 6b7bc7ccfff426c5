//! A ticket, from the queue to its verdict.

use gauntlet_judge::ComparisonReport;
use gauntlet_queue::{State, Status};
use gauntlet_report::{Rendered, looks, visible, visible_lines};
use maud::{Markup, html};

use crate::error::PageError;
use crate::frame::moment;
use crate::site::Served;
use crate::source::Page;

/// A ticket: where it stands, and what was found.
pub fn page(served: &Served, id: &str) -> Result<Page, PageError> {
    let unknown = |_| PageError::Unknown(format!("there is no ticket `{}`", visible(id)));
    let status = served.queue.status(id).map_err(unknown)?;
    let body = html! {
        header {
            h1 { "Ticket of " (visible(&status.client)) }
            p.title { (what(&status)) }
        }
        section {
            h2 { "Where it stands" }
            (progress(served, &status))
            dl {
                dt { "ticket" } dd { (status.id) }
                dt { "queued" } dd { (moment(status.created)) }
                @if let Some(ended) = status.ended { dt { "ended" } dd { (moment(ended)) } }
                dt { "comparisons of this task by its client" } dd { (status.tries) }
            }
        }
        (found(&status))
    };
    Ok(Page {
        is_live: !status.is_over(),
        ..Page::new(format!("Ticket {id}"), body)
    })
}

/// What is judged, in a line.
pub fn what(one: &Status) -> Markup {
    let judgement = &one.judgement;
    html! {
        (judgement.command.name()) " " (visible(&judgement.kernels.join(" against ")))
        @if !judgement.kernels.is_empty() { " on " }
        (visible(&judgement.task))
    }
}

/// Where a ticket stands. While it runs, this includes the intervals at the looks of its plan. Nothing on the page ends the ticket: a user
/// who ended it as soon as an interval pleased would be wrong more often than its level says.
pub fn progress(served: &Served, one: &Status) -> Markup {
    html! {
        p.outcome {
            b { (one.state) }
            @if one.state == State::Queued { ", " (one.ahead) " before it" }
            @if let (Some(reason), None) = (&one.reason, &one.result) { ": " (visible_lines(reason)) }
            @if one.is_a_win() { ": a win, found faster by the target in two comparisons" }
        }
        @if let Some(second) = &one.confirmation {
            p { "A second comparison, on inputs of its own, decides whether it is a win: " (second.state) "." }
        }
        @if let (State::Running, Some(attempt)) = (one.state, one.attempts.last()) {
            p.quiet { "Attempt " (attempt.number) ", by " (visible(&attempt.worker)) ", since " (moment(attempt.began)) "." }
        }
        @let running = one.confirmation.as_ref().map_or(&one.id, |second| &second.ticket);
        @if let Some(so_far) = served.queue.looks(running).filter(|_| !one.is_over()) {
            @let seen: Vec<_> = so_far.seen.iter().map(|seen| (seen.pairs, seen.interval.clone())).collect();
            p { "Pair " (so_far.pairs) "; the next look is after pair " (so_far.next) ". Between looks an interval promises nothing." }
            (looks(&seen, &so_far.criteria))
        }
    }
}

/// What was found, as the report of a comparison or in its own words.
fn found(status: &Status) -> Markup {
    let Some(result) = &status.result else {
        return html! {};
    };
    let report = result
        .result
        .clone()
        .and_then(|document| serde_json::from_value::<ComparisonReport>(document).ok());
    html! {
        @match report {
            Some(report) => (report.body()),
            None => section { h2 { "Found" } pre tabindex="0" { (visible_lines(&result.report)) } }
        }
    }
}
