//! Why a task cannot be used.

use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with a task, where, and how to correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TaskError {
    /// The file at fault, where it is known.
    pub file: Option<PathBuf>,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// How to correct it.
    pub remedy: String,
}

impl TaskError {
    /// An error that has no place in a file.
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// The same error, in a file.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        Self {
            file: Some(file.to_owned()),
            ..self
        }
    }

    /// The same error, at a line.
    pub(crate) fn at_line(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }

    /// Message and remedy as one text.
    pub(crate) fn whole(&self) -> String {
        format!("{self}; {}", self.remedy)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}", file.display())?;
            if let Some(line) = self.line {
                write!(formatter, ":{line}")?;
            }
            formatter.write_str(": ")?;
        }
        formatter.write_str(&self.message)
    }
}
