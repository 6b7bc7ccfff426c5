//! What people write about verdicts: notes, and acknowledgements of regressions. Neither is evidence, so they are kept beside the
//! ledger and not in it: one file with a line for each, which says who wrote it and when. Lines are added and never changed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::PageError;

/// The most letters of a note.
pub const MAX_NOTE: usize = 2000;

/// What is done about a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// A note is added.
    Annotate,
    /// A regression is acknowledged: its writer looks after it, so that nobody else need do so.
    Acknowledge,
    /// An acknowledgement is taken back.
    Withdraw,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The run of the verdict.
    pub run: String,
    /// What was done.
    pub act: Act,
    /// In words; may be empty.
    pub text: String,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// The notes on the verdicts of a ledger.
#[derive(Debug, Default)]
pub struct Notes {
    all: Vec<Note>,
}

impl Notes {
    /// The notes beside a ledger; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not what this program wrote.
    pub fn beside(ledger: &Path) -> Result<Self, PageError> {
        let path = file(ledger);
        let mut text = String::new();
        match File::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(PageError::File { path, source }),
        }
        let read = |line| {
            serde_json::from_str(line).map_err(|error| PageError::File {
                path: path.clone(),
                source: error.into(),
            })
        };
        let all = text.lines().map(read).collect::<Result<_, _>>()?;
        Ok(Self { all })
    }

    /// Adds a line, whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(ledger: &Path, note: &Note) -> Result<(), PageError> {
        let path = file(ledger);
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.lock()?;
            let mut line = serde_json::to_vec(note)?;
            line.push(b'\n');
            let before = file.metadata()?.len();
            let written = file.write_all(&line).and_then(|()| file.sync_all());
            if written.is_err() {
                // Half a line would make all notes unreadable.
                file.set_len(before)?;
            }
            written
        };
        write().map_err(|source| PageError::File {
            path: path.clone(),
            source,
        })
    }

    /// The notes on the verdict of a run, the oldest first.
    pub fn on(&self, run: &str) -> impl Iterator<Item = &Note> {
        self.all.iter().filter(move |note| note.run == run)
    }

    /// The acknowledgement of a run's verdict; none if there is none, or if it was taken back.
    pub fn acknowledged(&self, run: &str) -> Option<&Note> {
        let acts = self.on(run).filter(|note| note.act != Act::Annotate);
        acts.last().filter(|note| note.act == Act::Acknowledge)
    }
}

fn file(ledger: &Path) -> PathBuf {
    let mut name = OsString::from(ledger);
    name.push(".notes");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regression_is_acknowledged_until_that_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        assert!(Notes::beside(&ledger).expect("no notes yet").all.is_empty());
        let mut said = Vec::new();
        for act in [Act::Acknowledge, Act::Annotate, Act::Withdraw] {
            let note = Note {
                run: "r1".to_owned(),
                act,
                text: "a line\nand another".to_owned(),
                by: "alice".to_owned(),
                at: Timestamp::UNIX_EPOCH,
            };
            Notes::add(&ledger, &note).expect("a note");
            said.push(note);
            let notes = Notes::beside(&ledger).expect("the notes");
            assert_eq!(notes.all, said);
            assert_eq!(notes.acknowledged("r1").is_some(), act != Act::Withdraw);
            assert_eq!(notes.acknowledged("r2"), None);
        }
    }
}
