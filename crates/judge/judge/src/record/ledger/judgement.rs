//! What a command that judges found, as one record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The body of a record of the kind `judgement`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JudgementRecord {
    /// The words of the command that judged, without the program's name.
    pub command: Vec<String>,
    /// On whose behalf, as `GAUNTLET_CLIENT` says; none if nobody is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The task or the suite.
    pub task: String,
    /// What was judged: the baseline, if there is one, before the kernel that the verdict is about.
    pub kernels: Vec<JudgedKernel>,
    /// The verdict; none if the command gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Its reason.
    pub reason: String,
    /// The speed-up as a fraction, between its bounds; none if there is no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<Speedup>,
    /// Whether it was interrupted, so that `--resume` goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The files that it depends on, with their BLAKE3 digests, by which their contents are kept beside the ledger.
    pub sources: BTreeMap<String, String>,
    /// The whole result, as `--json` writes it.
    #[serde(default)]
    pub document: Value,
}

/// A kernel that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedKernel {
    /// As it was given.
    pub text: String,
    /// The digest of its files and of what is named in them; of the text, if it is in no file.
    pub digest: String,
    /// Where it is in the history of a repository; none if its file is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

/// The place of a kernel in the history of a git repository, when it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    /// The full name of the commit that was checked out.
    pub id: String,
    /// The kernel as it is named at the root of the checkout, such as `src/softmax.py:fast`.
    pub kernel: String,
    /// Whether the kernel's file is not as the commit has it; so too if the commit has no such file, as with a built library.
    pub changed: bool,
}

/// A speed-up, as a fraction: 0.02 is 2 % faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speedup {
    /// The lower bound.
    pub lower: f64,
    /// The best guess.
    pub estimate: f64,
    /// The upper bound.
    pub upper: f64,
}
