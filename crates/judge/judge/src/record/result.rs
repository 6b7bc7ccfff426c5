//! The result of one comparison: what `compare` and `judge` show, write as JSON, and read again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gauntlet_parameters::Parameters;
use gauntlet_stats::{Arm, Criteria};
use gauntlet_task::DispatchTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::Observations;
use crate::evidence::{Comparison, Finding, Measurement, Verdict};

/// One comparison with all its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ComparisonReport {
    /// The task.
    pub task: String,
    /// What is special about the task, or was not honoured of it.
    pub notes: Vec<String>,
    /// The kernel that the candidate is compared with.
    pub baseline: KernelReport,
    /// The kernel that the verdict is about, unless the baseline was stopped.
    pub candidate: KernelReport,
    /// The rules of the verdict.
    pub criteria: Criteria,
    /// The version of the program.
    pub version: String,
    /// What the figures depend on.
    pub environment: BTreeMap<String, String>,
    /// What the gates found of the candidate; empty if it was only compared.
    pub findings: Vec<Finding>,
    /// The times; none if a kernel was stopped before there were any.
    pub comparison: Option<Comparison>,
    /// The kernel that the verdict is about.
    pub side: Arm,
    /// The outcome.
    pub verdict: Verdict,
    /// Its reason.
    pub reason: String,
    /// What is kept so that pairs can be added to it; none if a kernel was stopped, or another program measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// What is kept of a comparison so that pairs can be added to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Kept {
    /// What must be the same for the further pairs, beside version, environment and criteria.
    pub conditions: Conditions,
    /// What was observed.
    pub observations: Observations,
}

/// The conditions under which two kernels are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// The task as it was named.
    pub task: String,
    /// The benchmark cases that were chosen by name; all if there are none.
    pub chosen: Vec<String>,
    /// Whether the kernels ran on a GPU, and not on the CPU.
    pub on_gpu: bool,
    /// The device, if one was named.
    pub device: Option<String>,
    /// How they are measured.
    pub measurement: Measurement,
    /// The BLAKE3 digest of the task's cases.
    pub cases: String,
    /// The BLAKE3 digest of the program, since builds of one version may differ; empty if it cannot be read.
    pub program: String,
    /// The files of the kernels, of the task and of tables, with their BLAKE3 digests.
    pub files: BTreeMap<String, String>,
}

/// One of the two kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KernelReport {
    /// As it was given.
    pub text: String,
    /// A short name for sentences.
    pub name: String,
    /// It in one line, or in several where a table chooses for each case.
    pub described: String,
    /// The parameters of a built-in kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// The program of any other kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<PathBuf>>,
    /// The table that chooses the parameters of each case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchTable>,
}

impl ComparisonReport {
    /// The comparison, unless its times are void.
    pub fn believed(&self) -> Option<&Comparison> {
        self.comparison
            .as_ref()
            .filter(|_| self.verdict != Verdict::Blocked)
    }

    /// Whether it was interrupted, so that it can go on as it was planned.
    pub fn is_interrupted(&self) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|kept| kept.observations.interrupted)
    }

    /// The short names of the baseline and the candidate.
    pub fn names(&self) -> [&str; 2] {
        [&self.baseline.name, &self.candidate.name]
    }

    /// The kernel that the verdict is about.
    pub fn subject(&self) -> &KernelReport {
        match self.side {
            Arm::Baseline => &self.baseline,
            Arm::Candidate => &self.candidate,
        }
    }
}
