//! What became slower.

use gauntlet_judge::ledger::Wanted;
use gauntlet_report::visible;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};
use maud::html;

use crate::address::{Address, slug};
use crate::error::PageError;
use crate::frame::moment;
use crate::listing::{place, speedup};
use crate::pages::{Page, Source};

/// How far back a list goes that names no day.
const USUAL: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Verdicts of regressions since a day, the newest first, with what people noted of them.
pub fn page(source: &Source<'_>, since: Option<Date>) -> Result<Page, PageError> {
    let begin = since
        .and_then(|day| day.to_zoned(TimeZone::UTC).ok())
        .map_or_else(|| Timestamp::now() - USUAL, |day: Zoned| day.timestamp());
    let mut found = source.verdicts(&Wanted::default())?;
    let is_slower = |verdict: Option<&str>| verdict == Some("regression");
    found.retain(|one| {
        one.at >= begin && is_slower(one.verdict.as_deref()) && !one.predicted && !one.interrupted
    });
    let day = begin.strftime("%Y-%m-%d").to_string();
    let body = html! {
        header { h1 { "Regressed since " (day) } }
        @if source.links.are_served() {
            form action="/regressed" {
                label { "since" input type="date" name="since" value=(day); }
                button { "show" }
            }
        }
        @if found.is_empty() { p { "No kernel was found to be slower." } }
        @else {
            p.quiet { (found.len()) " verdicts, the newest first. `gauntlet bisect` finds the commit." }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "when" } th { "task" } th { "kernel" } th { "against" } th { "speed-up" } th { "noted" } } }
                    tbody {
                        @for one in &found {
                            @let task = one.task.as_deref().unwrap_or("–");
                            tr {
                                td.whole { a href=(source.links.to(&place(one))) { (moment(one.at)) } }
                                td { a href=(source.links.to(&Address::Task(slug(task)))) { (visible(task)) } }
                                td { (visible(one.kernel.as_deref().unwrap_or("–"))) }
                                td { (visible(one.baseline.as_deref().unwrap_or("–"))) }
                                td.number { (speedup(one)) }
                                td { (source.notes.short(one.run.as_str())) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page {
        title: format!("Regressed since {day}"),
        body,
    })
}
