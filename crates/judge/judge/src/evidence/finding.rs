//! A gate's finding, always with its evidence.

use std::collections::BTreeMap;

use gauntlet_device::{Accuracy, on_record};
use gauntlet_task::Violation;
use gauntlet_task::{ErrorMeasures, InputKind};
use gauntlet_worker::protocol::Resources;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::evidence::{Checked, Comparison, Counters, Verdict};

/// A gate's finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The gate's name.
    pub gate: String,
    /// Whether the candidate continues.
    pub outcome: Outcome,
    /// Why, in a sentence.
    pub reason: String,
    /// The evidence.
    pub evidence: Evidence,
    /// How long the examination took.
    pub seconds: f64,
}

/// Whether a candidate continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It continues; after the last gate, it is adopted.
    Pass,
    /// It continues although the gate could not examine it; the reason says why.
    Skip,
    /// It ends here.
    Stop(Verdict),
}

/// The evidence for a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Evidence {
    /// Nothing beyond the reason.
    Reason,
    /// Rules broken, by case; empty when all are kept.
    Constraints {
        /// Each broken rule once, with the first case that breaks it.
        violations: Vec<CaseViolation>,
    },
    /// The model's prediction.
    Prediction(Box<Prediction>),
    /// Resources that the build uses.
    Resources {
        /// By case.
        cases: BTreeMap<String, Resources>,
        /// Budgets exceeded.
        exceeded: Vec<String>,
    },
    /// How far results are from the oracle.
    Correctness {
        /// One entry a case and kind of input.
        cases: Vec<CaseErrors>,
    },
    /// Whether results repeat.
    Repeats {
        /// Runs compared, over all cases.
        runs: usize,
        /// Cases in which two runs differed in at least one bit.
        differing: Vec<String>,
        /// The seed of each case's operands.
        #[serde(default)]
        seed: u64,
        /// The race checker's report.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checked: Vec<Checked>,
    },
    /// Where the time goes.
    Profile {
        /// By case.
        cases: BTreeMap<String, Profile>,
        /// A GPU's counters for one of the cases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counters: Option<Box<Counters>>,
    },
    /// Whether it is faster.
    Comparison(Box<Comparison>),
    /// The evidence of a gate that was handed to the session.
    #[serde(untagged)]
    Other(OtherEvidence),
}

/// Evidence in a form that the judge does not know: the crate of its gate has the type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherEvidence {
    /// The name of the form.
    pub kind: String,
    /// The fields of the form.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Evidence {
    /// Evidence in a form of a gate's own, under the form's name.
    pub fn other(kind: &str, form: &impl Serialize) -> Self {
        let fields = match serde_json::to_value(form) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self::Other(OtherEvidence {
            kind: kind.to_owned(),
            fields,
        })
    }

    /// Evidence of this form, read; none if it has another.
    pub fn read<Form: DeserializeOwned>(&self, kind: &str) -> Option<Form> {
        match self {
            Self::Other(other) if other.kind == kind => {
                serde_json::from_value(Value::Object(other.fields.clone())).ok()
            }
            _ => None,
        }
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseViolation {
    /// The first case that breaks it.
    pub case: String,
    /// The rule, its source, and what would satisfy it.
    pub violation: Violation,
}

/// A predicted speed-up with its error bar; 1.5 means one and a half times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The low end.
    pub low: f64,
    /// The middle.
    pub middle: f64,
    /// The high end.
    pub high: f64,
    /// The model's upper limit on the gain of any kernel over the baseline: the estimate for the baseline over the
    /// roofline.
    pub headroom: f64,
    /// How accurate predictions were on this device before; none if they were never compared with times there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
}

impl Prediction {
    /// Whether predictions on this device were accurate enough to base decisions on.
    pub fn is_relied_on(&self) -> bool {
        self.accuracy.is_some_and(|accuracy| accuracy.suffices())
    }

    /// The record of predictions on this device, in words.
    pub fn record(&self) -> String {
        on_record(self.accuracy.as_ref())
    }
}

/// How far one case is from the oracle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseErrors {
    /// The case.
    pub case: String,
    /// The kind of input.
    pub inputs: InputKind,
    /// The seed of the operands, so that they can be regenerated.
    pub seed: u64,
    /// The measures.
    pub errors: ErrorMeasures,
    /// The error; none if the result is right.
    pub fault: Option<String>,
}

/// Where the time of a call goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Median seconds around the call.
    pub call: f64,
    /// Median seconds on the device alone.
    pub kernel: Option<f64>,
    /// Shares of the call by phase: `setup`, `load`, `multiply`, `epilogue`, `wait`. They add up to 1.
    pub shares: BTreeMap<String, f64>,
}

impl Finding {
    /// The comparison in the evidence, if there is one.
    pub fn comparison(&self) -> Option<&Comparison> {
        match &self.evidence {
            Evidence::Comparison(comparison) => Some(comparison),
            _ => None,
        }
    }

    /// Whether the candidate ends here.
    pub fn stops(&self) -> Option<Verdict> {
        match self.outcome {
            Outcome::Stop(verdict) => Some(verdict),
            Outcome::Pass | Outcome::Skip => None,
        }
    }
}
