//! The ledger itself: how much it holds, and whether it is as it was written.

use gauntlet_judge::ledger::Verification;
use maud::{Markup, html};

use crate::error::PageError;
use crate::source::{Page, Source};

/// The ledger and its chains of digests.
pub fn page(source: &Source<'_>) -> Result<Page, PageError> {
    let (own, imported) = (source.ledger.verify()?, source.ledger.verify_imported()?);
    let body = html! {
        header { h1 { "Ledger" } }
        p { (source.index.count()?) " verdicts. Each record carries the digest of the one before it." }
        section {
            h2 { "Is it as it was written?" }
            p.quiet { "As of the moment when these pages were made." }
            p { "This ledger: " (verified(&own)) }
            @for (origin, found) in &imported { p { "Imported from " code { (origin) } ": " (verified(found)) } }
            p.quiet { "A digest that you keep elsewhere shows a ledger that was rewritten from its beginning." }
            pre tabindex="0" { "gauntlet ledger verify" }
        }
    };
    Ok(Page::new("Ledger", body))
}

fn verified(found: &Verification) -> Markup {
    html! {
        @match found {
            Verification::Intact { records, head } => {
                b.good { "✓ " (records) " records, all as they were written" } "; the chain ends in " code { (head) }
            }
            Verification::Broken { sequence, breach } => b.bad { "✗ broken at record " (sequence) ": " (breach.to_string()) },
        }
    }
}
