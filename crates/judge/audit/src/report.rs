//! What an audit found.

use schemars::JsonSchema;
use serde::Serialize;

use crate::NullKernel;

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AuditReport {
    /// The task or suite.
    pub task: String,
    /// What is special about the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Cases on which the battery was tried.
    pub cases: Vec<String>,
    /// Null kernels that leave work out and could be tried.
    pub tried: usize,
    /// Those of them that the task refuses.
    pub refused: usize,
    /// The share of those that it refuses; none if none could be tried.
    pub score: Option<f64>,
    /// Every null kernel that could be tried.
    pub kernels: Vec<KernelTried>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

/// A null kernel, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KernelTried {
    /// The null kernel.
    pub kernel: NullKernel,
    /// The one output that it makes, or the input that it leaves out or changes; none if it makes whole results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Cases on which it could be tried.
    pub cases: usize,
    /// Cases on which its results are right by the task's rules.
    pub passes: usize,
    /// Whether it leaves work out, so that its passing makes the task blind.
    pub leaves_work_out: bool,
}

/// Something to be known of a task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The name by which the task can accept it, where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How much it says against the task.
    pub weight: Weight,
    /// What was found, where, and the remedy.
    pub text: String,
}

/// How much a finding says against a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The task cannot tell a kernel from one that leaves work out.
    Blind,
    /// The same, and the task says that it knows.
    Accepted,
    /// Something that readers of the task's verdicts should know.
    Note,
}

impl AuditReport {
    /// Whether the task is blind to something that it does not accept.
    pub fn is_blind(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.weight == Weight::Blind)
    }
}
