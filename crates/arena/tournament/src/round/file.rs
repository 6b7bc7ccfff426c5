//! The content of a round file.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use gauntlet_judge::{ExecutorKind, Measurement};
use gauntlet_parameters::Parameters;
use gauntlet_stats::Criteria;
use gauntlet_task::Rules;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::participants::{ContestantFile, PanellistFile};
use crate::pitch::Pitch;
use crate::source::SourceFolder;

/// The content of a round file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(transform = accept_task)]
pub struct RoundFile {
    /// Its name, unique in the tournament.
    pub name: String,
    /// What it is about, in a sentence.
    pub title: String,
    /// The executor of candidates that bring no program of their own.
    pub executor: ExecutorKind,
    /// A built-in device, `host`, or a path to a device file.
    pub device: String,
    /// The task, also written `task`: a built-in suite, a suite file, or a task of the user's or of another benchmark.
    #[serde(alias = "task")]
    pub suite: String,
    /// The names of the suite's benchmark cases to use.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Threads of the built-in kernels on a CPU; one for each processor unless this is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<NonZeroUsize>,
    /// The record that `replay` serves.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// The baseline; without it, the round starts from the previous round's result.
    #[serde(default)]
    pub baseline: Option<Baseline>,
    /// The source that pitches change; the kernel in it is the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceFolder>,
    /// The criteria of the verdict.
    #[serde(default)]
    pub criteria: Criteria,
    /// The measurement plan.
    #[serde(default)]
    pub measurement: Measurement,
    /// The rules for a correct result.
    #[serde(default)]
    pub correctness: Rules,
    /// Upper bounds on resources, by name.
    #[serde(default)]
    pub budgets: BTreeMap<String, f64>,
    /// The panel.
    #[serde(default)]
    pub judge: Vec<PanelMember>,
    /// Pitches in files of their own. A folder stands for all pitch files in it, so others can put theirs there.
    #[serde(default)]
    pub pitches: Vec<PathBuf>,
    /// Pitches written here.
    #[serde(default)]
    pub pitch: Vec<Pitch>,
    /// Contestants, who pitch by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contestant: Vec<ContestantFile>,
    /// Panellists, who ask and vote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panellist: Vec<PanellistFile>,
    /// How often the round is played: as `NAME-1`, `NAME-2` and so on, each from the result of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<NonZeroUsize>,
    /// Working hours for the pitches of contestants, dealt by the gain that an hour is expected to bring; no limit unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<f64>,
    /// Whether it is a research round, which resets the count of rounds without an adoption.
    #[serde(default)]
    pub research: bool,
}

/// Lets files call the suite a task.
fn accept_task(schema: &mut Schema) {
    let object = schema.ensure_object();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut)
        && let Some(suite) = properties.get("suite").cloned()
    {
        properties.insert("task".to_owned(), suite);
    }
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "suite");
    }
    object.insert(
        "oneOf".to_owned(),
        json!([{ "required": ["suite"] }, { "required": ["task"] }]),
    );
}

/// The candidate that all others are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The words in which it differs from the default schedule.
    #[serde(default)]
    pub schedule: Parameters,
    /// A dispatch table, which gives the schedule of each problem.
    #[serde(default)]
    pub dispatch: Option<PathBuf>,
    /// An external program that speaks the worker protocol.
    #[serde(default)]
    pub command: Option<Vec<PathBuf>>,
    /// A kernel in a form that `gauntlet compare` takes, such as `softmax.py:slow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// A member of the panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PanelMember {
    /// A name.
    pub name: String,
    /// The weights of the dimensions.
    pub weights: Weights,
    /// Scores given by hand, by pitch; missing ones follow from the written rules.
    #[serde(default)]
    pub scores: BTreeMap<String, GivenScores>,
}

/// The weights of the dimensions; they add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, try_from = "RawWeights")]
pub struct Weights {
    /// Expected speed-up.
    pub speedup: f64,
    /// Whether it can be built.
    pub feasibility: f64,
    /// Freedom from risk.
    pub risk: f64,
    /// How well it is argued.
    pub quality: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Weights")]
struct RawWeights {
    /// Expected speed-up.
    speedup: f64,
    /// Whether it can be built.
    feasibility: f64,
    /// Freedom from risk.
    risk: f64,
    /// How well it is argued.
    quality: f64,
}

impl TryFrom<RawWeights> for Weights {
    type Error = String;

    fn try_from(
        RawWeights {
            speedup,
            feasibility,
            risk,
            quality,
        }: RawWeights,
    ) -> Result<Self, String> {
        let all = [speedup, feasibility, risk, quality];
        let sum: f64 = all.iter().sum();
        if all.iter().any(|weight| !(0.0..=1.0).contains(weight)) || (sum - 1.0).abs() > 1e-6 {
            return Err(format!(
                "weights {all:?} add up to {sum}: each lies in 0…1 and together they make 1"
            ));
        }
        Ok(Self {
            speedup,
            feasibility,
            risk,
            quality,
        })
    }
}

/// Scores from 0 to 10 given by hand; missing ones follow from the written rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenScores {
    /// Expected speed-up.
    pub speedup: Option<f64>,
    /// Whether it can be built.
    pub feasibility: Option<f64>,
    /// Freedom from risk.
    pub risk: Option<f64>,
    /// How well it is argued.
    pub quality: Option<f64>,
    /// The weighted score that the judge printed; it is checked against the arithmetic.
    pub printed: Option<f64>,
}
