//! Constraints that parameters break.

use std::fmt;

use gauntlet_parameters::Parameters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A constraint that the parameters break for a case on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// The faulty parameter, down to its part (`tile.m`). Records call it `word`.
    #[serde(rename = "word")]
    pub parameter: String,
    /// The value it has.
    pub value: String,
    /// The rule, with its figures.
    pub rule: String,
    /// The source of the rule.
    pub source: String,
    /// The nearest parameters that keep every rule, one entry for each kind of change; empty if none was found.
    pub remedies: Vec<Remedy>,
}

/// Parameters near the faulty ones that keep every rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// What to change, as the end of a sentence.
    pub sentence: String,
    /// All parameters. Records call them `schedule`.
    #[serde(rename = "schedule")]
    pub parameters: Parameters,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} = {}: {}", self.parameter, self.value, self.rule)?;
        for (index, remedy) in self.remedies.iter().enumerate() {
            let separator = if index == 0 { ";" } else { ", or" };
            write!(formatter, "{separator} {}", remedy.sentence)?;
        }
        Ok(())
    }
}
