//! The cost of a call on the host, as stated in a file or on the command line.

use std::str::FromStr;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A `[host]` table: costs of the framework that no device description contains, with their source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", try_from = "RawHostCost")]
pub struct HostCost {
    /// Cost of every call that is set up from scratch.
    pub constant: SignedDuration,
    /// Cost of each group of a GEMM, or of each sequence of attention.
    pub per_group: SignedDuration,
    /// The source of the figures.
    pub source: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "HostCost")]
struct RawHostCost {
    /// Cost of every call that is set up from scratch.
    #[serde(default)]
    constant: SignedDuration,
    /// Cost of each group of a GEMM, or of each sequence of attention.
    #[serde(default)]
    per_group: SignedDuration,
    /// The source of the figures.
    source: String,
}

impl TryFrom<RawHostCost> for HostCost {
    type Error = HostError;

    fn try_from(raw: RawHostCost) -> Result<Self, HostError> {
        for (name, time) in [("constant", raw.constant), ("per-group", raw.per_group)] {
            if time.is_negative() {
                return Err(HostError::Negative { name });
            }
        }
        Ok(Self {
            constant: raw.constant,
            per_group: raw.per_group,
            source: raw.source,
        })
    }
}

/// Why a text does not state a host cost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostError {
    /// A cost is negative.
    #[error("host.{name} is negative; a host takes no time or some")]
    Negative {
        /// Its name.
        name: &'static str,
    },
    /// The text does not have the expected form.
    #[error("`{text}` is no cost of the host; write constant=95us,per-group=35us, or one of them")]
    Form {
        /// The text.
        text: String,
    },
}

/// Parses `constant=95us,per-group=35us`, in any order, with a comma or a blank between; a missing figure is zero.
impl FromStr for HostCost {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let wrong = || HostError::Form {
            text: text.to_owned(),
        };
        let mut raw = RawHostCost {
            constant: SignedDuration::ZERO,
            per_group: SignedDuration::ZERO,
            source: "the command line".to_owned(),
        };
        if text.trim().is_empty() {
            return Err(wrong());
        }
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or_else(wrong)?;
            let time: SignedDuration = value.parse().map_err(|_| wrong())?;
            match name {
                "constant" => raw.constant = time,
                "per-group" => raw.per_group = time,
                _ => return Err(wrong()),
            }
        }
        raw.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_the_command_line_say_the_same() {
        let file: HostCost =
            toml::from_str("constant = \"95 µs\"\nper-group = \"35us\"\nsource = \"a fit\"").unwrap();
        let line: HostCost = "per-group=35us constant=95us".parse().unwrap();
        assert_eq!((file.constant, file.per_group), (line.constant, line.per_group));
        assert_eq!(file.constant, SignedDuration::from_micros(95));
        assert_eq!(line.source, "the command line");
        let again: HostCost = serde_json::from_value(serde_json::to_value(&file).unwrap()).unwrap();
        assert_eq!(again, file);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "95us", "constant=95", "fixed=95us", "constant=-1us"] {
            assert!(text.parse::<HostCost>().is_err(), "{text}");
        }
        let without_source = "constant = \"95us\"";
        assert!(toml::from_str::<HostCost>(without_source).is_err());
    }
}
