//! What the reference process answers.

use std::collections::BTreeMap;

use gauntlet_tensors::TensorSpec;
use serde::Deserialize;
use serde_json::Value;

/// A task that was opened.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Opened {
    /// Its own name, if its text gives one.
    pub(crate) name: Option<String>,
    /// A one-line description.
    pub(crate) summary: String,
    /// What is not honoured, and what stands in its place.
    pub(crate) notes: Vec<String>,
    pub(crate) correctness: Vec<NamedCase>,
    pub(crate) benchmark: Vec<NamedCase>,
    /// Whether it has a check of its own.
    pub(crate) has_check: bool,
    /// Whether only that check decides.
    pub(crate) check_is_the_rule: bool,
    /// Names of kernels that leave work out and pass, of which the task knows; none if its format cannot say so.
    pub(crate) accepts: Option<Vec<String>>,
}

/// A case as the task lists it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedCase {
    pub(crate) name: String,
    /// Its parameters in words.
    pub(crate) shown: String,
    /// What its generator is called with.
    pub(crate) parameters: Value,
}

/// The tensors and rules of one case.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(crate) struct CaseTensors {
    pub(crate) inputs: Vec<TensorSpec>,
    pub(crate) outputs: Vec<TensorSpec>,
    /// Names of the inputs that stay the same.
    pub(crate) constant: Vec<String>,
    /// Whether equal inputs must give equal bits in every call.
    pub(crate) deterministic: bool,
    /// What a worker is told.
    pub(crate) sizes: Value,
    /// The task's own limits; none if it leaves them to the types of its outputs.
    pub(crate) tolerance: Option<StatedTolerance>,
    pub(crate) work: Work,
    /// Names of the inputs that the reference changes.
    #[serde(default)]
    pub(crate) changed: Vec<String>,
    /// Outputs that lie in the memory of an input, which the reference leaves as it was, with that input.
    #[serde(default)]
    pub(crate) lent: Vec<[String; 2]>,
    /// Outputs that the task's own check accepts in a narrower type than the reference's, with that type.
    #[serde(default)]
    pub(crate) narrower: Vec<[String; 2]>,
}

/// Limits that a task states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatedTolerance {
    /// One table for all outputs.
    All(StatedLimits),
    /// A table for each output named.
    Outputs(BTreeMap<String, StatedLimits>),
}

/// A table of limits. A limit that is null is none at all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StatedLimits {
    #[serde(deserialize_with = "limit")]
    pub(crate) rtol: Option<f64>,
    #[serde(deserialize_with = "limit")]
    pub(crate) atol: Option<f64>,
    #[serde(deserialize_with = "limit")]
    pub(crate) nrmse: Option<f64>,
    #[serde(deserialize_with = "limit")]
    pub(crate) bias: Option<f64>,
    #[serde(deserialize_with = "limit")]
    pub(crate) share: Option<f64>,
}

fn limit<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(
        Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::MAX),
    ))
}

/// What a call costs, if the task says it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Work {
    pub(crate) flops: Option<f64>,
    pub(crate) bytes: Option<f64>,
}

/// Whether the reference takes inputs in f64.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct InDouble {
    pub(crate) done: bool,
}

/// The answer of the task's own check.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Checked {
    pub(crate) fault: Option<String>,
}
