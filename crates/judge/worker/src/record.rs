//! Recorded evidence: what a record states about each candidate.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocol::Resources;

/// Evidence recorded for the candidates of a round, used instead of running them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Record {
    /// What the figures are and where they come from.
    pub source: String,
    /// The relative error of a single recorded time. Without it, a single time per side gives no interval.
    #[serde(default)]
    pub uncertainty: Option<Uncertainty>,
    /// Candidates by name: `baseline`, or a pitch's name.
    pub candidates: BTreeMap<String, CandidateRecord>,
    /// Recorded times of other programs, for claims made against them: name → case → microseconds.
    #[serde(default)]
    pub peers: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A declared bound on the relative error of a recorded time: an assumption, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uncertainty {
    /// 0.1 means that the truth lies within 10 % of the recorded time.
    pub relative: f64,
    /// The reason for this bound.
    pub why: String,
}

/// Evidence recorded for one candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CandidateRecord {
    /// The compiler's result.
    #[serde(default)]
    pub compilation: Option<RecordedCompilation>,
    /// The result of its correctness gate.
    #[serde(default)]
    pub correctness: Option<RecordedCorrectness>,
    /// The result of a race checker; `None` if none was run.
    #[serde(default)]
    pub races: Option<String>,
    /// Shares of the time by phase, from a profile; `None` without a profile.
    #[serde(default)]
    pub phase_shares: BTreeMap<String, f64>,
    /// Recorded times in microseconds by case, one number or several.
    #[serde(default)]
    pub times: BTreeMap<String, Times>,
    /// Other notes.
    #[serde(default)]
    pub note: Option<String>,
}

/// One recorded time or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Times {
    /// A lone number.
    One(f64),
    /// Repeats.
    Several(Vec<f64>),
}

impl Times {
    /// All times, in microseconds.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::One(time) => std::slice::from_ref(time),
            Self::Several(times) => times,
        }
    }
}

/// Recorded times, in microseconds: from a picosecond on. In seconds, a smaller one could be 0.
const TIMES: std::ops::RangeInclusive<f64> = 1e-6..=1e15;

/// A recorded compiler result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCompilation {
    /// The error, if compilation failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Registers, shared memory and the like.
    #[serde(default)]
    pub resources: Resources,
}

/// A recorded result of a correctness gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCorrectness {
    /// Tests that passed.
    pub passed: u32,
    /// Tests run.
    pub tests: u32,
    /// What was compared, with which tolerance, and any doubts about it.
    #[serde(default)]
    pub note: String,
}

/// Why a record cannot be used.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It cannot be read.
    #[error("the record {path} cannot be read: {source}; check the round's `record`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// It is not a record.
    #[error("the record {path} is malformed: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// The location, in bytes.
        span: Option<Range<usize>>,
        /// The error.
        message: String,
    },
}

impl Record {
    /// Reads a record from a TOML file.
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        let text = std::fs::read_to_string(path).map_err(|source| RecordError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, RecordError> {
        let malformed = |span, message| RecordError::Malformed {
            path: path.to_owned(),
            text: text.to_owned(),
            span,
            message,
        };
        let record: Self =
            toml::from_str(text).map_err(|error| malformed(error.span(), error.message().to_owned()))?;
        if let Some(uncertainty) = &record.uncertainty
            && !(uncertainty.relative > 0.0 && uncertainty.relative < 1.0)
        {
            return Err(malformed(
                None,
                format!(
                    "uncertainty.relative = {}: must lie between 0 and 1, both excluded; leave [uncertainty] out if \
                     nothing is known",
                    uncertainty.relative
                ),
            ));
        }
        record.check().map_err(|message| malformed(None, message))?;
        Ok(record)
    }

    /// TOML allows NaN and infinity, which would silently pass comparisons with bounds.
    fn check(&self) -> Result<(), String> {
        let impossible = |time: &f64| !TIMES.contains(time);
        for (name, candidate) in &self.candidates {
            for (case, times) in &candidate.times {
                if times.as_slice().is_empty() || times.as_slice().iter().any(impossible) {
                    return Err(format!(
                        "candidates.{name}.times.{case}: at least one time, in microseconds, from 1e-6 on"
                    ));
                }
            }
            if let Some((phase, share)) = candidate
                .phase_shares
                .iter()
                .find(|(_, share)| !(0.0..=1.0).contains(*share))
            {
                return Err(format!(
                    "candidates.{name}.phase-shares.{phase} = {share}: a share lies between 0 and 1"
                ));
            }
            let resources = candidate
                .compilation
                .iter()
                .flat_map(|compilation| &compilation.resources.0);
            if let Some((resource, value)) = resources.into_iter().find(|(_, value)| !value.is_finite()) {
                return Err(format!(
                    "candidates.{name}.compilation.resources.{resource} = {value}: must be a finite number"
                ));
            }
            if let Some(correctness) = &candidate.correctness
                && (correctness.tests == 0 || correctness.passed > correctness.tests)
            {
                return Err(format!(
                    "candidates.{name}.correctness: {} of {} tests passed; leave it out if none were run",
                    correctness.passed, correctness.tests
                ));
            }
        }
        for (name, times) in &self.peers {
            if let Some((case, time)) = times.iter().find(|(_, time)| impossible(time)) {
                return Err(format!(
                    "peers.{name}.{case} = {time}: a time in microseconds, from 1e-6 on"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_cannot_be_are_refused_by_name() {
        for (text, culprit) in [
            (
                "[uncertainty]\nrelative = 0.0\nwhy = \"\"",
                "uncertainty.relative = 0",
            ),
            ("candidates.a.times = { x = nan }", "candidates.a.times.x"),
            ("candidates.a.times = { x = 0 }", "candidates.a.times.x"),
            // In seconds it would be 0.
            ("candidates.a.times = { x = 1e-320 }", "candidates.a.times.x"),
            ("candidates.a.times = { x = [] }", "candidates.a.times.x"),
            (
                "candidates.a.phase-shares = { epilogue = nan }",
                "phase-shares.epilogue",
            ),
            (
                "candidates.a.compilation.resources = { registers = inf }",
                "resources.registers",
            ),
            (
                "candidates.a.correctness = { passed = 0, tests = 0 }",
                "0 of 0 tests",
            ),
            ("peers.other = { x = 0.0 }", "peers.other.x"),
        ] {
            let text = format!("source = \"\"\n{text}\n");
            let text = if text.contains("candidates") {
                text
            } else {
                format!("candidates = {{}}\n{text}")
            };
            let error = Record::parse(Path::new("record.toml"), &text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(culprit), "{error}");
        }
    }
}
