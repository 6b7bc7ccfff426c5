//! What is under way: tickets that run or wait, and rounds that are being played.

use std::path::Path;

use gauntlet_judge::ledger::{Ledger, RunSummary};
use gauntlet_queue::{State, Status};
use gauntlet_report::visible;
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::frame::{Links, moment};
use crate::site::Served;
use crate::source::Page;
use crate::tickets::{progress, what};

/// How many of the newest tickets are looked through, and how many runs of the ledger.
const LOOKED_THROUGH: usize = 200;

/// How many tickets that ended are listed.
const ENDED: usize = 10;

/// Tickets and rounds, with what the running ones have shown at their looks.
pub fn page(links: &Links, served: &Served, ledger: &Path) -> Result<Page, PageError> {
    let tickets = served.queue.history(None, None, LOOKED_THROUGH)?;
    let (open, ended): (Vec<Status>, Vec<Status>) = tickets.into_iter().partition(|one| !one.is_over());
    let (mut waiting, running): (Vec<Status>, Vec<Status>) =
        open.into_iter().partition(|one| one.state == State::Queued);
    waiting.reverse();
    let rounds = rounds(ledger)?;
    let body = html! {
        header { h1 { "Now" } }
        p.quiet {
            @if served.works { "This server runs tickets on its own machine, one at a time." }
            @else { "Tickets are run by other programs, which take them from the queue." }
        }
        @if let Some(why) = &served.resting { p.notice { (visible(why)) } }
        section {
            h2 { "Running" }
            @if running.is_empty() && rounds.is_empty() { p { "Nothing is judged at present." } }
            @for one in &running { (run(links, served, one)) }
            @for one in &rounds {
                p { "A round: " a href=(links.to(&Address::Round(one.id.to_string()))) { (visible(&one.start.file)) } ", since " (moment(one.started)) "." }
            }
        }
        section {
            h2 { "Waiting" }
            @if waiting.is_empty() { p { "No ticket waits." } } @else { (list(links, &waiting)) }
        }
        @if !ended.is_empty() {
            section { h2 { "Ended last" } (list(links, &ended[..ended.len().min(ENDED)])) }
        }
    };
    Ok(Page {
        is_live: true,
        ..Page::new("Now", body)
    })
}

/// The newest runs of rounds that are being played: they have not ended, and their lock lies beside the ledger. One that was killed may
/// leave its lock behind, and is then shown until it is resumed.
fn rounds(ledger: &Path) -> Result<Vec<RunSummary>, PageError> {
    if !ledger.exists() {
        return Ok(Vec::new());
    }
    let mut runs = Ledger::open_read_only(ledger)?.newest_runs(LOOKED_THROUGH)?;
    runs.retain(|run| {
        let mut lock = ledger.as_os_str().to_owned();
        lock.push(format!(".{}.lock", run.id));
        run.ended.is_none() && Path::new(&lock).exists()
    });
    Ok(runs)
}

fn run(links: &Links, served: &Served, one: &Status) -> Markup {
    html! {
        h3 { a href=(links.to(&Address::Ticket(one.id.clone()))) { (what(one)) } }
        (progress(served, one))
    }
}

fn list(links: &Links, tickets: &[Status]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.list {
                thead { tr { th { "queued" } th { "ticket" } th { "client" } th { "state" } } }
                tbody {
                    @for one in tickets {
                        tr {
                            td.whole { (moment(one.created)) }
                            td { a href=(links.to(&Address::Ticket(one.id.clone()))) { (what(one)) } }
                            td { (visible(&one.client)) }
                            td { (state(one)) }
                        }
                    }
                }
            }
        }
    }
}

fn state(one: &Status) -> Markup {
    let verdict = one.result.as_ref().and_then(|result| result.verdict.as_deref());
    html! { (one.state) @if let Some(verdict) = verdict { ": " (visible(verdict)) } }
}
