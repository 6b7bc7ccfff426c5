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
    /// Whether the machine is at fault and not the task: its disk is full.
    pub is_of_the_machine: bool,
}

impl TaskError {
    /// An error that has no place in a file.
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            message: message.into(),
            remedy: remedy.into(),
            is_of_the_machine: false,
        }
    }

    /// An error in writing to the folder for temporary files. A folder that is missing or closed is the user's to name; anything else, such
    /// as a full disk, is the machine's.
    pub(crate) fn of_temporary_files(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let is_of_the_place = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::PermissionDenied
                | ErrorKind::ReadOnlyFilesystem
        );
        Self {
            is_of_the_machine: !is_of_the_place,
            ..Self::new(
                format!("the folder of the reference process cannot be written: {error}"),
                "free some space, or name another folder by TMPDIR",
            )
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

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_full_disk_is_the_machines_and_a_missing_folder_is_not() {
        let of = |kind: ErrorKind| TaskError::of_temporary_files(&Error::from(kind)).is_of_the_machine;
        assert!(of(ErrorKind::StorageFull) && of(ErrorKind::QuotaExceeded));
        assert!(!of(ErrorKind::NotFound) && !of(ErrorKind::PermissionDenied));
    }
}
