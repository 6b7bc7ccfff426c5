//! The notes on the page of a verdict, and the form that adds one.

use std::path::Path;

use gauntlet_judge::ledger::{Index, Ledger, Wanted};
use gauntlet_report::{visible, visible_lines};
use maud::{Markup, html};

use crate::error::PageError;

use crate::frame::moment;
use crate::notes::{Act, MAX_NOTE, Note, Notes};
use crate::source::Source;

/// Adds a note on a verdict, or an acknowledgement of it.
///
/// # Errors
/// If the ledger has no such verdict, or the notes cannot be written.
pub fn annotate(ledger: &Path, note: &Note) -> Result<(), PageError> {
    let unknown = || PageError::Unknown(format!("there is no verdict of a run `{}`", visible(&note.run)));
    let found = match ledger.exists() {
        true => Index::of(&Ledger::open_read_only(ledger)?)?.verdicts(&Wanted::default())?,
        false => Vec::new(),
    };
    let mut runs = found.iter().map(|one| one.run.as_str());
    runs.find(|run| *run == note.run).ok_or_else(unknown)?;
    Notes::add(ledger, note)
}

/// The notes on the verdict of a run, with a form for a reader who may add one.
pub fn section(source: &Source<'_>, run: &str, is_regression: bool) -> Markup {
    let notes: Vec<&Note> = source.notes.on(run).collect();
    let form = source.served.and_then(|served| served.proof.as_deref());
    html! {
        @if !notes.is_empty() || form.is_some() {
            section {
                h2 { "Notes" }
                @for note in notes { (told(note)) }
                @if let Some(proof) = form { (ask(source, run, is_regression, proof)) }
            }
        }
    }
}

/// A note in a paragraph.
pub fn told(note: &Note) -> Markup {
    let what = match note.act {
        Act::Annotate => "noted",
        Act::Acknowledge => "acknowledged it",
        Act::Withdraw => "no longer acknowledges it",
    };
    html! {
        p {
            span.quiet { (note.by) " " (what) ", " (moment(note.at)) }
            @if !note.text.is_empty() { br; (visible_lines(&note.text)) }
        }
    }
}

/// The form. It works without script; `proof` shows the server that this page was the one that asked.
fn ask(source: &Source<'_>, run: &str, is_regression: bool, proof: &str) -> Markup {
    let is_acknowledged = source.notes.acknowledged(run).is_some();
    html! {
        form method="post" action=(source.links.below("notes")) {
            input type="hidden" name="run" value=(run);
            input type="hidden" name="proof" value=(proof);
            label { "A note" textarea name="text" rows="3" maxlength=(MAX_NOTE) {} }
            p {
                button name="act" value="annotate" { "Add the note" }
                @if is_acknowledged { " " button name="act" value="withdraw" { "Acknowledge no longer" } }
                @else if is_regression { " " button name="act" value="acknowledge" { "Acknowledge" } }
            }
        }
    }
}
