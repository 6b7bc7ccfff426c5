//! Errors in suites.

use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

/// Why a suite cannot be used.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// No suite of that name comes with the program.
    #[error("no suite is called `{name}`; there are {known}, or give the path of a TOML file")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There is no such file.
    #[error("there is no suite file {}; check the path, or name one of the suites that come with gauntlet", file.display())]
    Missing {
        /// The path that was tried.
        file: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read suite file {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a suite.
    #[error("{}{}: {message}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The line at fault, from 1, where it is known.
        line: Option<usize>,
        /// The bytes of `text` at fault, where they are known.
        span: Option<Range<usize>>,
        /// The error, and how to correct it.
        message: String,
        /// The text of the file.
        text: String,
    },
}

/// An error in a text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The bytes at fault, where they are known.
    pub span: Option<Range<usize>>,
    /// The error, and how to correct it.
    pub message: String,
}

impl Fault {
    /// A fault at these bytes.
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            message: message.into(),
        }
    }

    /// The line of `text`, from 1, where the fault starts.
    pub fn line(&self, text: &str) -> Option<usize> {
        let before = text.as_bytes().get(..self.span.as_ref()?.start)?;
        Some(before.iter().filter(|&&byte| byte == b'\n').count() + 1)
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self {
            span: error.span(),
            message: error.message().into(),
        }
    }
}
