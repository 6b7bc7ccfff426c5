//! What became slower.

use gauntlet_judge::ledger::Wanted;
use jiff::{SignedDuration, Timestamp};
use maud::html;

use crate::error::PageError;
use crate::listing::table;
use crate::source::{Page, Source};

/// How far back the list goes.
const DAYS: i64 = 30;

/// Kernels that were measured and found to be slower, the newest first.
pub fn page(source: &Source<'_>) -> Result<Page, PageError> {
    let begin = Timestamp::now() - SignedDuration::from_hours(24 * DAYS);
    let mut found = source.verdicts(&Wanted::default())?;
    found.retain(|one| {
        let is_slower = one.verdict.as_deref() == Some("regression");
        one.at >= begin && is_slower && !one.predicted && !one.interrupted
    });
    let body = html! {
        header { h1 { "Regressed" } }
        p.quiet {
            @if found.is_empty() { "No kernel was found to be slower in the last " (DAYS) " days." }
            @else { "Found to be slower in the last " (DAYS) " days, the newest first." }
        }
        (table(&source.links, &found))
    };
    Ok(Page {
        title: "Regressed".to_owned(),
        body,
    })
}
