//! Reads user-written files, with errors that point into them.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gauntlet_parameters::field_meant;
use gauntlet_task::SuiteError;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// An error in a file, with its place.
#[derive(Debug, Error)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Its text, empty if it could not be read.
    pub text: String,
    /// The byte range in the text.
    pub span: Option<Range<usize>>,
    /// The error.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(line) = self.line() {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

impl FileError {
    /// An error about the file as a whole.
    pub fn whole(path: &Path, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            text: String::new(),
            span: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// An error about a suite: in the suite's own file if possible, otherwise at the place that `named` gives.
    pub fn of_suite(error: SuiteError, named: impl Fn(String, String) -> Self) -> Self {
        match error {
            SuiteError::Invalid {
                file,
                span,
                message,
                text,
                ..
            } => Self {
                path: file,
                text,
                span,
                remedy: format!(
                    "correct the suite at this place; `gauntlet suites` and its files show the form{}",
                    field_meant(&message)
                ),
                message,
            },
            other => named(
                other.to_string(),
                "`gauntlet suites` lists those built in".to_owned(),
            ),
        }
    }

    /// The line of the error, counted from 1.
    pub fn line(&self) -> Option<usize> {
        let start = self.span.as_ref()?.start.min(self.text.len());
        Some(
            self.text.as_bytes()[..start]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1,
        )
    }
}

/// A parsed file together with its text, which digests and later messages need.
#[derive(Debug, Clone)]
pub struct Source<T> {
    /// Where it was read from.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The parsed content.
    pub value: T,
}

impl<T: DeserializeOwned> Source<T> {
    /// Reads a TOML file; `what` names the kind of file in messages, such as "round".
    pub fn read(path: &Path, what: &str) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            FileError::whole(
                path,
                format!("the {what} file cannot be read: {error}"),
                if error.kind() == std::io::ErrorKind::InvalidData {
                    "a text file in TOML is wanted; check the path"
                } else {
                    "check the path; paths inside a file are relative to that file"
                },
            )
        })?;
        let value = toml::from_str(&text).map_err(|error| FileError {
            path: path.to_owned(),
            text: text.clone(),
            span: error.span(),
            message: error.message().to_owned(),
            remedy: remedy_of(error.message(), what),
        })?;
        Ok(Self {
            path: path.to_owned(),
            text,
            value,
        })
    }
}

impl<T> Source<T> {
    /// Another value that stands in the same file.
    pub fn with<U>(&self, value: U) -> Source<U> {
        Source {
            path: self.path.clone(),
            text: self.text.clone(),
            value,
        }
    }

    /// An error about this file, pointing at the first place where `needle` stands in quotation marks, or else its
    /// first occurrence.
    pub fn error_at(&self, needle: &str, message: impl Into<String>, remedy: impl Into<String>) -> FileError {
        // A short name is part of many words.
        let quoted = self.text.find(&format!("\"{needle}\"")).map(|start| start + 1);
        let start = quoted.or_else(|| self.text.find(needle));
        FileError {
            path: self.path.clone(),
            text: self.text.clone(),
            span: start.map(|start| start..start + needle.len()),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// The file's own folder, to which the paths in it are relative.
    pub fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        }
    }

    /// A path that the file names, relative to the file's own folder.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        match self.path.parent() {
            Some(folder) if path.is_relative() => folder.join(path),
            _ => path.to_owned(),
        }
    }
}

fn remedy_of(message: &str, what: &str) -> String {
    if let Some(field) = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next())
    {
        return format!("add `{field}` to the {what}; docs/guide/rounds.md shows every part");
    }
    let unknown = ["unknown field", "unknown variant", "a schedule has no word"];
    if unknown.iter().any(|start| message.starts_with(start)) || message.contains("does not know") {
        let meant = field_meant(message);
        return format!(
            "use one of the words listed, `gauntlet schedules` explains those of a schedule{meant}"
        );
    }
    format!("correct the {what} at this place")
}
