//! What can go wrong with a device description.

use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

/// Why a device could not be had.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// No embedded description has that name.
    #[error(
        "no device is called `{name}`{}; there are {known}, `host`, and any description you write yourself \
         (give the path of its TOML file)",
        suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name there is.
        suggestion: Option<String>,
        /// All embedded names.
        known: String,
    },
    /// The file cannot be read.
    #[error("device file {} cannot be read: {source}; check the path, or name one of the embedded devices", file.display())]
    Read {
        /// Where it was looked for.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file does not describe a device.
    #[error("device file {}: {message}", file.display())]
    Invalid {
        /// Which file.
        file: PathBuf,
        /// The bytes at fault, where they are known.
        span: Option<Range<usize>>,
        /// What is wrong, and what would be right.
        message: String,
    },
}
