//! Dispatch tables: which schedule computes which problem, and how that was found out.
//!
//! ```toml
//! version = 1
//! device = "host"
//! executor = "cpu"
//! gauntlet = "0.1.0"
//! made = "2026-11-21T03:00:00Z"
//!
//! [[entry]]
//! case = "case-1"
//! problem = { family = "grouped-gemm", groups = [{ m = 80, n = 4096, k = 7168 }] }
//! schedule = { tile = [64, 64, 256], stages = 2 }
//! evidence = "measured"                  # or "predicted": the model alone has spoken; or "kept"
//! speedup = { estimate = 1.4, low = 1.3, high = 1.5, confidence = 0.95 }   # over the baseline
//! model-choice = { schedule = { stages = 2 }, regret = 0.02, low = 0.0, high = 0.04 }
//! ```

use std::path::{Path, PathBuf};

use gauntlet_parameters::Parameters;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Sizes;

/// Farther than this, as a factor, the parameters of other sizes say nothing.
pub const FARTHEST: f64 = 4.0;

/// The form that this version reads and writes.
pub const VERSION: u32 = 1;

/// Which schedule computes which problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchTable {
    /// The form of the file.
    pub version: u32,
    /// The device that it is for.
    pub device: String,
    /// What ran the candidates: `cpu`, or `model` where nothing was run.
    pub executor: String,
    /// The version of the program that made it.
    pub gauntlet: String,
    /// When it was made, RFC 3339.
    pub made: String,
    /// One entry a problem.
    #[serde(default, rename = "entry")]
    pub entries: Vec<DispatchEntry>,
}

/// The schedule of one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchEntry {
    /// The problem's name in its suite.
    pub case: String,
    /// The sizes, as [`Sizes::to_record`] writes them.
    pub problem: serde_json::Value,
    /// How it is computed.
    pub schedule: Parameters,
    /// What speaks for it.
    pub evidence: DispatchEvidence,
    /// How many times as fast as the baseline; none where the baseline itself was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupRange>,
    /// What the model would have chosen; none where nobody asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_choice: Option<ModelChoice>,
}

/// What speaks for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DispatchEvidence {
    /// It was measured beside the baseline.
    Measured,
    /// The model expects it; nothing was run.
    Predicted,
    /// Nothing was shown to be faster than the baseline, so that is kept.
    Kept,
}

/// A speed-up with its interval; 1.5 means one and a half times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedupRange {
    /// The best guess.
    pub estimate: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The interval's two-sided confidence.
    pub confidence: f64,
}

/// What the model put first, and how far from the best it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelChoice {
    /// The schedule that the model put first.
    pub schedule: Parameters,
    /// How much longer it takes than the entry's schedule: 0.02 is 2 % longer. None where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The lower bound of the regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper bound of the regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// What is wrong with a table's file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DispatchError {
    /// It cannot be read.
    #[error("the dispatch table {} cannot be read: {message}; check the path", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        message: String,
    },
    /// It is of another form.
    #[error("the dispatch table {} is malformed: {message}; `gauntlet tune` writes such tables", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong, with its place.
        message: String,
    },
    /// It is of another version.
    #[error(
        "the dispatch table {} is of version {version} and this program reads version {VERSION}; make it anew with \
         `gauntlet tune`",
        file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// The version that it says.
        version: u32,
    },
}

/// How the schedule of a problem was found in a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Match<'t> {
    /// The table has this very problem.
    Exact(&'t DispatchEntry),
    /// It has one near it.
    Nearest {
        /// The entry.
        entry: &'t DispatchEntry,
        /// How far, as a factor: 2 is as far as twice as many rows.
        factor: f64,
    },
}

impl<'t> Match<'t> {
    /// The schedule.
    pub fn schedule(&self) -> &'t Parameters {
        &self.entry().schedule
    }

    /// The entry.
    pub fn entry(&self) -> &'t DispatchEntry {
        match self {
            Self::Exact(entry) | Self::Nearest { entry, .. } => entry,
        }
    }
}

impl DispatchTable {
    /// Reads a table from a file.
    ///
    /// # Errors
    /// If the file cannot be read, is no table, or is of another version.
    pub fn load(file: &Path) -> Result<Self, DispatchError> {
        let text = std::fs::read_to_string(file).map_err(|error| DispatchError::Unreadable {
            file: file.to_owned(),
            message: error.to_string(),
        })?;
        Self::parse(&text, file)
    }

    /// Reads a table from text; `file` is what messages call it.
    ///
    /// # Errors
    /// If the text is no table or is of another version.
    pub fn parse(text: &str, file: &Path) -> Result<Self, DispatchError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let malformed = |error: toml::de::Error| DispatchError::Malformed {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        };
        // A later version may have words that this one does not know, so its number is looked at first.
        let Versioned { version } = toml::from_str(text).map_err(malformed)?;
        if version != VERSION {
            return Err(DispatchError::Version {
                file: file.to_owned(),
                version,
            });
        }
        toml::from_str(text).map_err(malformed)
    }

    /// The table as the text of a file.
    ///
    /// # Errors
    /// If a number in it has no place in TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// How many entries rest on the model's word alone.
    pub fn predicted(&self) -> usize {
        let is_predicted = |entry: &&DispatchEntry| entry.evidence == DispatchEvidence::Predicted;
        self.entries.iter().filter(is_predicted).count()
    }

    /// The parameters for these sizes: those of the entry with the same sizes; else, of the entries of the same task that
    /// differ in sizes only, those of the nearest one no farther than a factor of [`FARTHEST`]; none otherwise. Entries
    /// whose parameters are not `allowed` for the sizes are passed over.
    pub fn find(&self, sizes: &Sizes, allowed: impl Fn(&Parameters) -> bool) -> Option<Match<'_>> {
        let usable = self.entries.iter().filter(|entry| allowed(&entry.schedule));
        let near = usable.filter_map(|entry| {
            let task = sizes.task();
            let is_same_task = entry
                .problem
                .get("family")
                .is_some_and(|family| family == task.name());
            let other = task.open(&entry.problem).ok().filter(|_| is_same_task)?;
            let distance = if other == *sizes {
                -1.0
            } else {
                sizes.distance(&*other)?
            };
            Some((distance, entry))
        });
        let (distance, entry) = near
            .filter(|(distance, _)| *distance <= FARTHEST.ln())
            .min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        Some(if distance < 0.0 {
            Match::Exact(entry)
        } else {
            Match::Nearest {
                entry,
                factor: distance.exp(),
            }
        })
    }
}
