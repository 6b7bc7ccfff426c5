//! Suites: named lists of problems, built in or read from TOML files of the same form.
//!
//! ```toml
//! name = "mine"                     # the file's name where it is left out
//! description = "what it is for"    # may be left out
//!
//! [[correctness]]                   # to be right on; may be left out
//! name = "small"
//! grouped-gemm = { groups = [{ m = 80, n = 384, k = 256 }, { m = 1, n = 256, k = 512 }], form = "swiglu" }
//!
//! [[benchmark]]                     # to be timed, at least one
//! name = "large"
//! inputs = "competition"            # or "wide", "outliers", "adversarial"; what is timed
//! data = "layer-3.safetensors"      # real operands in place of made ones, from the suite's folder (see `storage`)
//! speed-of-light = { device = "B200", microseconds = 18.833 }
//! grouped-gemm = { groups = { m = [80, 176], n = 4096, k = 7168 } }   # a number stands for every group
//!
//! [[benchmark]]
//! name = "attention"
//! attention = { batch = 1, heads = 8, length = 512, head-size = 64, format = "e4m3", causal = true }
//! ```
//!
//! `form` is `plain` or `swiglu`, `output` is `f16`, `bf16` or `f32`, `format` is `e4m3`, `int8`, `f16` or `bf16`.
//! Attention takes `batch` and `length`, or `sequences = [{ queries = 1, keys = 300 }, …]`; `kv-heads` is `heads` where
//! it is left out. `scaling` is `per-tensor`, `per-head` (where it is left out) or `per-block`: which values of a format
//! with scales share one.

mod error;
mod file;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{InputKind, Problem};
pub use error::SuiteError;

/// The TOML of each suite that comes with the program.
const BUILTIN: [(&str, &str); 3] = [
    ("group-gemm", include_str!("../suites/group-gemm.toml")),
    ("dual-gemm", include_str!("../suites/dual-gemm.toml")),
    ("attention", include_str!("../suites/attention.toml")),
];

/// A named list of problems.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Suite {
    /// What it is called.
    pub name: String,
    /// What it is, in a line; may be empty.
    pub description: String,
    /// What a candidate must be right on.
    pub correctness: Vec<Case>,
    /// What is timed; at least one.
    pub benchmark: Vec<Case>,
}

/// A problem with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// What it is called, unlike any other case of its list.
    pub name: String,
    /// What is computed; valid.
    pub problem: Problem,
    /// On what it is timed.
    pub inputs: InputKind,
    /// A safetensors file of operands that take the place of made ones, in both the timing and the examination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// What the best kernel imaginable would take.
    pub speed_of_light: Option<SpeedOfLight>,
}

/// A published bound on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpeedOfLight {
    /// The device.
    pub device: String,
    /// The time.
    pub microseconds: f64,
}

impl Suite {
    /// Names of the suites that come with the program.
    pub fn builtin_names() -> impl ExactSizeIterator<Item = &'static str> {
        BUILTIN.iter().map(|&(name, _)| name)
    }

    /// A suite that comes with the program.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn builtin(name: &str) -> Result<Self, SuiteError> {
        match BUILTIN.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, Path::new(&format!("{name}.toml"))),
            None => Err(SuiteError::Unknown {
                name: name.into(),
                known: Self::builtin_names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Reads a suite from a TOML file.
    ///
    /// # Errors
    /// When the file cannot be read, is no suite, or has a case whose sizes make no problem.
    pub fn load(path: &Path) -> Result<Self, SuiteError> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => SuiteError::Missing { file: path.into() },
            _ => SuiteError::Read {
                file: path.into(),
                source,
            },
        })?;
        Self::parse(&text, path)
    }

    /// Reads a suite from the text of `file`.
    ///
    /// # Errors
    /// When the text is no suite, or has a case whose sizes make no problem.
    pub fn parse(text: &str, file: &Path) -> Result<Self, SuiteError> {
        let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or("suite");
        file::parse(text, stem, file.parent().unwrap_or(Path::new(""))).map_err(|fault| SuiteError::Invalid {
            file: file.into(),
            line: fault.line(text),
            span: fault.span,
            message: fault.message,
            text: text.into(),
        })
    }
}
