//! The ledger itself: how much it holds, and whether it is as it was written.

use gauntlet_judge::ledger::Verification;
use gauntlet_report::visible;
use maud::{Markup, html};

use crate::address::Address;
use crate::error::PageError;
use crate::pages::{Page, Source};

/// The ledger, and its chain of digests if that is asked for.
pub fn page(source: &Source<'_>, verify: bool) -> Result<Page, PageError> {
    let name = source
        .ledger
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let checked = match verify {
        true => Some((source.ledger.verify()?, source.ledger.verify_imported()?)),
        false => None,
    };
    let again = source.links.to(&Address::Ledger { verify: true });
    let body = html! {
        header { h1 { "Ledger" } }
        p { (visible(&name)) " holds " (source.index.count()?) " verdicts. Each record carries the digest of the one before it." }
        section {
            h2 { "Is it as it was written?" }
            @match &checked {
                Some((own, imported)) => {
                    p { "This ledger: " (verified(own)) }
                    @for (origin, found) in imported { p { "Imported from " code { (origin) } ": " (verified(found)) } }
                    p.quiet { "A digest that you keep elsewhere shows a ledger that was rewritten from its beginning." }
                }
                None => p { a href=(again) { "Verify its chain" } ", which reads all of it." },
            }
            pre tabindex="0" { "gauntlet ledger verify" }
        }
    };
    Ok(Page {
        title: "Ledger".to_owned(),
        body,
    })
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
