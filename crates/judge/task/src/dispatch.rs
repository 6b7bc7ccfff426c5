//! Dispatch tables: which schedule computes which problem, and the evidence for it.
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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Sizes;

/// Parameters of sizes that differ by more than this factor are not used.
pub const FARTHEST: f64 = 4.0;

/// The format version that this program reads and writes.
pub const VERSION: u32 = 1;

/// Which schedule computes which problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchTable {
    /// The format version of the file.
    pub version: u32,
    /// The device that it is for.
    pub device: String,
    /// The executor that ran the candidates: `cpu`, or `model` if nothing was run.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchEntry {
    /// The problem's name in its suite.
    pub case: String,
    /// The sizes, as [`Sizes::to_record`] writes them.
    pub problem: serde_json::Value,
    /// How it is computed.
    pub schedule: Parameters,
    /// The evidence for it.
    pub evidence: DispatchEvidence,
    /// How many times as fast as the baseline; none if the baseline itself was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupRange>,
    /// The model's choice; none if the model was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_choice: Option<ModelChoice>,
}

/// The evidence for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DispatchEvidence {
    /// It was measured against the baseline.
    Measured,
    /// The model expects it; nothing was run.
    Predicted,
    /// Nothing was shown to be faster than the baseline, so the baseline is kept.
    Kept,
}

/// A speed-up with its interval; 1.5 means one and a half times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// The model's first choice, and how far it was from the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelChoice {
    /// The model's first choice.
    pub schedule: Parameters,
    /// How much longer it takes than the entry's schedule: 0.02 is 2 % longer. None if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
    /// The lower bound of the regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper bound of the regret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Why a dispatch table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DispatchError {
    /// The file cannot be read.
    #[error("the dispatch table {} cannot be read: {message}; check the path", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        message: String,
    },
    /// The file is malformed.
    #[error("the dispatch table {} is malformed: {message}; `gauntlet tune` writes such tables", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The error and its place.
        message: String,
    },
    /// The file has another format version.
    #[error(
        "the dispatch table {} is of version {version} and this program reads version {VERSION}; make it anew with \
         `gauntlet tune`",
        file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// The version in the file.
        version: u32,
    },
}

/// How the schedule of a problem was found in a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Match<'t> {
    /// The table has exactly this problem.
    Exact(&'t DispatchEntry),
    /// The table has a problem near this one.
    Nearest {
        /// The entry.
        entry: &'t DispatchEntry,
        /// The distance as a factor: 2 means, for example, twice as many rows.
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
    /// If the file cannot be read, is not a table, or has another version.
    pub fn load(file: &Path) -> Result<Self, DispatchError> {
        let text = std::fs::read_to_string(file).map_err(|error| DispatchError::Unreadable {
            file: file.to_owned(),
            message: error.to_string(),
        })?;
        Self::parse(&text, file)
    }

    /// Reads a table from text; `file` is its name in messages.
    ///
    /// # Errors
    /// If the text is not a table or has another version.
    pub fn parse(text: &str, file: &Path) -> Result<Self, DispatchError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let malformed = |error: toml::de::Error| DispatchError::Malformed {
            file: file.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        };
        // A later version may have unknown keys, so the version is checked first.
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
    /// If TOML cannot hold one of its numbers.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// The number of entries that rest on the model alone.
    pub fn predicted(&self) -> usize {
        let is_predicted = |entry: &&DispatchEntry| entry.evidence == DispatchEvidence::Predicted;
        self.entries.iter().filter(is_predicted).count()
    }

    /// The parameters for these sizes: those of the entry with the same sizes; else those of the nearest entry of the
    /// same task that differs in sizes only, by a factor of at most [`FARTHEST`]; else none. Entries whose parameters
    /// are not `allowed` for the sizes are skipped.
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
                sizes.distance(&other)?
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
