//! The arguments of the tools. Their descriptions are what an agent reads.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTask {
    /// Name or file.
    pub task: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name or file.
    pub task: String,
    /// Such as softmax.py:fast.
    pub kernel: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Name or file.
    pub task: String,
    /// Such as softmax.py:slow.
    pub baseline: String,
    /// Such as softmax.py:fast.
    pub candidate: String,
    /// Such as 60s; 120s unless given.
    pub budget: Option<String>,
    /// Only these benchmark cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// In seconds, not watched for cheats.
    #[serde(default)]
    pub quick: bool,
    /// A GPU, such as h200.
    pub device: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// Name or file.
    pub task: String,
    /// Such as softmax.py:fast.
    pub candidate: String,
    /// The task's own unless given.
    pub baseline: Option<String>,
    /// Such as 60s; 120s unless given.
    pub budget: Option<String>,
    /// Only these benchmark cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// A GPU, such as h200.
    pub device: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub ticket: String,
    /// Seconds, at most 45.
    pub wait: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfTicket {
    pub ticket: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfTask {
    /// All unless given.
    pub task: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pitch {
    /// The round's name; the only open one unless given.
    pub round: Option<String>,
    /// The pitch as TOML; paths in it are relative to the folder that it goes to.
    pub toml: String,
}
