//! What people noted of verdicts: in a file beside the ledger, a line for each note.
//!
//! Notes are no evidence, so they are not in the ledger, whose records nobody may change or add to by hand.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use gauntlet_report::{visible, visible_lines};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::error::PageError;
use crate::frame::{Links, moment};

/// The longest text of a note, in bytes.
const MAX_TEXT: usize = 4000;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The run that it is about.
    pub run: String,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub who: String,
    /// What it says.
    pub text: String,
    /// Whether somebody has taken the verdict on.
    #[serde(default)]
    pub acknowledged: bool,
}

/// The notes beside a ledger.
#[derive(Debug)]
pub struct Notes {
    path: PathBuf,
    notes: Vec<Note>,
}

impl Notes {
    /// The notes beside a ledger. A line that is no note is left out.
    pub fn beside(ledger: &Path) -> Self {
        let mut path = OsString::from(ledger);
        path.push(".notes");
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self {
            path: path.into(),
            notes: text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
        }
    }

    /// Adds a note.
    ///
    /// # Errors
    /// If the text is too long, or the file cannot be written.
    pub fn add(&mut self, note: Note) -> Result<(), PageError> {
        if note.text.len() > MAX_TEXT {
            return Err(PageError::Unknown(format!(
                "a note holds at most {MAX_TEXT} bytes, and this one has {}",
                note.text.len()
            )));
        }
        let mut line = serde_json::to_string(&note).unwrap_or_default();
        line.push('\n');
        // One write, so that two programs that add at once do not mix their lines.
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(line.as_bytes())
        };
        write().map_err(|source| PageError::File {
            path: self.path.clone(),
            source,
        })?;
        self.notes.push(note);
        Ok(())
    }

    fn about(&self, run: &str) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.run == run)
    }

    /// The notes on a run, with a form for another one where a server can take it.
    pub(crate) fn of(&self, links: &Links, run: &str) -> Markup {
        let has_any = self.about(run).next().is_some();
        html! {
            @if has_any || links.are_served() {
                section {
                    h2 { "Notes" }
                    @for note in self.about(run) {
                        p {
                            @if note.acknowledged { span.badge.fair { "acknowledged" } " " }
                            (visible_lines(&note.text)) " "
                            span.quiet { "— " (visible(&note.who)) ", " (moment(note.at)) }
                        }
                    }
                    @if links.are_served() {
                        form action="/notes" method="post" data-note="" {
                            input type="hidden" name="run" value=(run);
                            label { "note" input name="text" maxlength=(MAX_TEXT); }
                            label { "token" input name="token" type="password" autocomplete="off"; }
                            label { "acknowledge" input name="acknowledged" type="checkbox" value="1"; }
                            button { "add" }
                        }
                    }
                }
            }
        }
    }

    /// The last note on a run, for a row of a list.
    pub(crate) fn short(&self, run: &str) -> Markup {
        let is_taken = self.about(run).any(|note| note.acknowledged);
        html! {
            @if is_taken { span.badge.fair { "acknowledged" } " " }
            @if let Some(note) = self.about(run).last() { (visible(&note.text)) " — " (visible(&note.who)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_beside_the_ledger_and_shown_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        let note = Note {
            run: "r1".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            who: "ada".to_owned(),
            text: "<script>\nsecond line".to_owned(),
            acknowledged: true,
        };
        Notes::beside(&ledger).add(note.clone()).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join("ledger.sqlite.notes"))
            .unwrap()
            .write_all(b"no note\n")
            .unwrap();
        let notes = Notes::beside(&ledger);
        assert_eq!(notes.about("r1").collect::<Vec<_>>(), [&note]);
        assert_eq!(notes.about("r2").count(), 0);
        let shown = notes.short("r1").into_string();
        assert!(
            shown.contains("&lt;script&gt;") && shown.contains("acknowledged"),
            "{shown}"
        );
        let long = Note {
            text: "x".repeat(MAX_TEXT + 1),
            ..note
        };
        assert!(Notes::beside(&ledger).add(long).is_err());
    }
}
