//! Suites: named lists of cases, built in or read from TOML files of the same form.
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
//! inputs = "competition"            # or "wide", "outliers", "adversarial": the operands that are timed
//! data = "layer-3.safetensors"      # real operands in place of made ones, from the suite's folder (see `storage`)
//! speed-of-light = { device = "B200", microseconds = 18.833 }
//! grouped-gemm = { groups = { m = [80, 176], n = 4096, k = 7168 } }   # a number stands for every group
//!
//! [[benchmark]]
//! name = "attention"
//! attention = { batch = 1, heads = 8, length = 512, head-size = 64, format = "e4m3", causal = true }
//! ```
//!
//! The last key of a case names its task, and its value has the form that the task documents.

mod error;
mod file;
mod schema;
mod written;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gauntlet_parameters::Table;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::{InputKind, Sizes, Task};
pub use error::{Fault, SuiteError};
pub use written::WrittenSizes;

/// Letters of a name of a suite, a case, a round or a pitch: more than anyone reads, and less than a table can hold.
const MAX_NAME: usize = 200;

/// What is wrong with a name that is given in a file, if anything.
pub fn fault_of_name(name: &str) -> Option<String> {
    let letters = name.chars().count();
    (letters > MAX_NAME).then(|| {
        let start: String = name.chars().take(20).collect();
        format!("the name `{start}…` has {letters} letters; a name has at most {MAX_NAME}")
    })
}

/// A named list of cases.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// A one-line description; may be empty.
    pub description: String,
    /// The cases on which a candidate must be correct.
    pub correctness: Vec<Case>,
    /// The cases that are timed; at least one.
    pub benchmark: Vec<Case>,
    /// What a reader of results must know: where the task's text is not followed, and what stands in its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Sizes of a task, with a name and the operands that they are timed on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Case {
    /// Its name, unique in its list.
    pub name: String,
    /// The computation and its sizes. Records call it `problem`.
    #[serde(rename = "problem")]
    pub sizes: Sizes,
    /// The kind of operands it is timed on.
    pub inputs: InputKind,
    /// A safetensors file of operands that replace generated ones, in both timing and examination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// The time of the best conceivable kernel.
    pub speed_of_light: Option<SpeedOfLight>,
}

/// A published bound on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpeedOfLight {
    /// The device.
    pub device: String,
    /// The time.
    pub microseconds: f64,
}

impl Suite {
    /// The JSON Schema of suite files with cases of these tasks.
    pub fn file_schema(tasks: &[&'static dyn Task]) -> Schema {
        schema::schema(tasks)
    }

    /// Names of the suites that come with these tasks.
    pub fn builtin_names(tasks: &[&'static dyn Task]) -> Vec<&'static str> {
        let suites = tasks.iter().flat_map(|task| task.suites());
        suites.map(|(name, _)| *name).collect()
    }

    /// A suite that comes with one of these tasks.
    ///
    /// # Errors
    /// When none has that name.
    pub fn builtin(name: &str, tasks: &[&'static dyn Task]) -> Result<Self, SuiteError> {
        let mut suites = tasks.iter().flat_map(|task| task.suites());
        match suites.find(|(known, _)| *known == name) {
            Some((name, text)) => Self::parse(text, Path::new(&format!("{name}.toml")), tasks),
            None => Err(SuiteError::Unknown {
                name: name.into(),
                known: Self::builtin_names(tasks).join(", "),
            }),
        }
    }

    /// What was noticed of its cases while they were used, in sentences. That one correctness case is blind is left out: it
    /// may be there for its sizes, and others test.
    pub fn remarks(&self) -> Vec<String> {
        let of = |case: &Case| case.sizes.remarks().into_iter();
        let is_timed = !self.benchmark.is_empty();
        let checked = self.correctness.iter().flat_map(of);
        let checked = checked.filter(|remark| !(remark.is_blind && is_timed));
        let remarks = checked.chain(self.benchmark.iter().flat_map(of));
        remarks.map(|remark| remark.text).collect()
    }

    /// The parameters that the kernels of its cases take, each once.
    pub fn parameters(&self) -> Table {
        let mut tasks: Vec<&dyn Task> = Vec::new();
        for case in self.cases() {
            if tasks.iter().all(|known| known.name() != case.sizes.task().name()) {
                tasks.push(case.sizes.task());
            }
        }
        match tasks.as_slice() {
            [task] => task.parameters().clone(),
            several => {
                let empty = Table::new("the suite", Vec::new());
                several
                    .iter()
                    .fold(empty, |all, task| all.with(task.parameters()))
            }
        }
    }

    /// All cases, those for correctness first.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.correctness.iter().chain(&self.benchmark)
    }

    /// Reads a suite from a TOML file.
    ///
    /// # Errors
    /// When the file cannot be read, is not a suite, or has a case that its task refuses.
    pub fn load(path: &Path, tasks: &[&'static dyn Task]) -> Result<Self, SuiteError> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => SuiteError::Missing { file: path.into() },
            _ => SuiteError::Read {
                file: path.into(),
                source,
            },
        })?;
        Self::parse(&text, path, tasks)
    }

    /// Reads a suite from the text of `file`.
    ///
    /// # Errors
    /// When the text is not a suite, or has a case that its task refuses.
    pub fn parse(text: &str, file: &Path, tasks: &[&'static dyn Task]) -> Result<Self, SuiteError> {
        let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or("suite");
        file::parse(text, stem, file.parent().unwrap_or(Path::new("")), tasks).map_err(|fault| {
            SuiteError::Invalid {
                file: file.into(),
                line: fault.line(text),
                span: fault.span,
                message: fault.message,
                text: text.into(),
            }
        })
    }
}
