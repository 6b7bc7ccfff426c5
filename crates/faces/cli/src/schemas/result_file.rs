//! The files of the folder `results/`, which scripts write and check.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

/// A result with its envelope.
#[derive(JsonSchema)]
#[expect(
    dead_code,
    reason = "scripts write and read these files; this is for the schema"
)]
pub struct ResultFile {
    /// Where the result comes from.
    envelope: Envelope,
    /// What the experiment found, in a form of its own.
    #[schemars(flatten)]
    found: BTreeMap<String, Value>,
}

/// Where a result comes from.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "scripts write and read these files; this is for the schema"
)]
struct Envelope {
    /// The form of the envelope and its version.
    #[schemars(regex(pattern = "^gauntlet-result/1$"))]
    schema: String,
    /// The commit that was measured; left out if the result does not depend on one.
    commit: Option<String>,
    /// The command that wrote the file, or how it came about.
    command: String,
    /// The processor or GPU with its driver, or `none: …` for a result that was computed.
    machine: String,
    /// The day of the run, which is also the file's name.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    date: String,
    /// Earlier results that this one replaces.
    supersedes: Vec<String>,
}
