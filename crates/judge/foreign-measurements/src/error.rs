//! Files that cannot be read, or say too little.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error in a file of measurements, with its place and remedy.
#[derive(Debug, Error)]
pub struct SamplesError {
    /// The file.
    pub path: PathBuf,
    /// The line or field, if it is known.
    pub place: Option<String>,
    /// The error.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl SamplesError {
    /// An error about a file as a whole.
    pub(crate) fn whole(path: &Path, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            place: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// An error in a line, counted from 1, or in a field, such as `results[0].times`.
    pub(crate) fn at(
        path: &Path,
        place: impl fmt::Display,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            place: Some(place.to_string()),
            ..Self::whole(path, message, remedy)
        }
    }
}

impl fmt::Display for SamplesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(place) = &self.place {
            write!(formatter, ":{place}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}
