//! Errors in device descriptions.

use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

/// Why a device is not available.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// No embedded description has that name.
    #[error(
        "no device is called `{name}`{}; there are {known}, `host`, and any description you write yourself \
         (give the path of its TOML file)",
        suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        suggestion: Option<String>,
        /// All embedded names.
        known: String,
    },
    /// The file cannot be read.
    #[error("device file {} cannot be read: {source}; check the path, or name one of the embedded devices", file.display())]
    Read {
        /// The path that was tried.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file does not describe a device.
    #[error("device file {}: {message}", file.display())]
    Invalid {
        /// Which file.
        file: PathBuf,
        /// The faulty bytes, if they are known.
        span: Option<Range<usize>>,
        /// The error, and how to correct it.
        message: String,
    },
}
