//! Tickets as files, so that a job on another machine needs no database.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blobs::digest;
use crate::error::QueueError;
use crate::judgement::Judgement;

/// A judgement with its sources by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ticket {
    /// Its name; in a file without it, a digest of the file.
    #[serde(default)]
    pub id: String,
    /// Who asks; the ledger's record says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What is to be judged.
    pub judgement: Judgement,
    /// The name of the folder that the files are put into, after which some tasks are called; `sources` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The SHA-256 digests of the files that it names, and of those that they need, by path. Without any, the names are those of
    /// files in the folder where the job runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Ticket {
    /// Reads a ticket's file.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(path: &Path) -> Result<Self, QueueError> {
        let text = fs::read_to_string(path).map_err(QueueError::at(path))?;
        let no_ticket = |why: String| QueueError::NoTicket {
            path: path.to_owned(),
            why,
        };
        let mut ticket: Self = serde_json::from_str(&text).map_err(|error| no_ticket(error.to_string()))?;
        if ticket.id.is_empty() {
            ticket.id = digest(text.as_bytes())[..12].to_owned();
        }
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if ticket.id.len() > 64 || !ticket.id.chars().all(is_plain) {
            return Err(no_ticket(format!(
                "`{}` is no id: it becomes a file's name, so give letters, digits, - and _",
                ticket.id
            )));
        }
        let mut paths = ticket.files.keys().chain(&ticket.folder);
        match paths.find(|name| !is_inside(name)) {
            Some(name) => Err(no_ticket(format!("{name} leads out of the ticket's folder"))),
            None => Ok(ticket),
        }
    }
}

/// Whether a path stays in the folder that it is relative to.
pub(crate) fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_that_names_files_elsewhere_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ticket.json");
        let read = |files: &str, id: &str| {
            let judgement = r#"{"command": "check", "task": "t.py", "kernels": ["k.py:f"]}"#;
            let text = format!(r#"{{"id": "{id}", "judgement": {judgement}, "files": {{{files}}}}}"#);
            fs::write(&path, text).unwrap();
            Ticket::read(&path)
        };
        assert!(read(r#""a/b.py": "00""#, "one").is_ok());
        assert_eq!(read("", "").unwrap().id.len(), 12);
        for (files, id) in [
            (r#""../b.py": "00""#, "one"),
            (r#""/b.py": "00""#, "one"),
            ("", "../one"),
            ("", "a b"),
        ] {
            let error = read(files, id).unwrap_err().to_string();
            assert!(error.contains("no ticket"), "{error}");
        }
    }
}
