//! The pitch: a proposed change with everything its author must commit to beforehand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gauntlet_parameters::Parameters;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use gauntlet_judge::AbortRule;
use gauntlet_judge::Verdict;

/// A candidate with its claim and all commitments. Every part without a default is required: a pitch must say what it
/// costs and when it gives up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(transform = accept_contestant)]
pub struct Pitch {
    /// Its name, unique in the round.
    pub name: String,
    /// The author; records and scores belong to this name.
    #[serde(alias = "contestant")]
    pub author: String,
    /// The current problem, in the author's view.
    pub problem: String,
    /// The proposed change, in a sentence.
    pub change: String,
    /// The words of the schedule that change.
    #[serde(default)]
    pub schedule: Parameters,
    /// A dispatch table, which gives the schedule of each problem; `schedule` then applies to problems that no entry
    /// comes near.
    #[serde(default)]
    pub dispatch: Option<PathBuf>,
    /// An external program that speaks the worker protocol, in place of the round's executor.
    #[serde(default)]
    pub command: Option<Vec<PathBuf>>,
    /// A kernel in a form that `gauntlet compare` takes, such as `softmax.py:fast`, in place of the round's executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// A file with a unified diff of the round's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PathBuf>,
    /// Files with new contents for files of the round's source, by the path in the source. With `patch` or `files`, `kernel`
    /// names a function of the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PathBuf>,
    /// A loop from the records, in files and reports of earlier versions, which proved it in place of the loop of
    /// `schedule`. Only a round of records takes it still, and judges it by the record alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("deprecated" = true))]
    pub recorded_loop: Option<String>,
    /// The claim.
    pub claim: Claim,
    /// The chance of each verdict, in the author's view.
    pub odds: Odds,
    /// The cost of building it.
    pub cost: Cost,
    /// What may go wrong.
    pub risk: Risk,
    /// The evidence for the claim.
    pub evidence: Vec<Evidence>,
    /// When to give up; may be empty, but must be stated.
    pub abort: Vec<AbortRule>,
    /// What to do instead if it fails.
    pub fallback: Fallback,
    /// Another pitch of the round that must be adopted first; this one is then built on it.
    #[serde(default)]
    pub after: Option<String>,
    /// Whether to build on that pitch even if it was not adopted, provided only the comparison went against it. This
    /// allows a sequence of steps in which each step is measured against the one before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regardless: bool,
    /// Withdrawn by its author, with the reason.
    #[serde(default)]
    pub withdrawn: Option<String>,
    /// The new evidence since the same change was last judged.
    #[serde(default)]
    pub new_evidence: Option<String>,
}

/// The claim of a pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The geometric-mean speed-up over the suite, as quantiles.
    pub speedup: Quantiles,
    /// Claimed speed-ups over other programs.
    #[serde(default)]
    pub against: Vec<PeerClaim>,
}

/// Lets files of earlier versions keep their word for the author.
fn accept_contestant(schema: &mut Schema) {
    let object = schema.ensure_object();
    let earlier = json!({ "description": "The author, in files of earlier versions.", "type": "string", "deprecated": true });
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("contestant".to_owned(), earlier);
    }
    if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "author");
    }
    object.insert(
        "oneOf".to_owned(),
        json!([{ "required": ["author"] }, { "required": ["contestant"] }]),
    );
}

/// A claim against a program outside the round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerClaim {
    /// Its name in the record's `peers`.
    pub peer: String,
    /// The claimed speed-up over the peer.
    pub times: f64,
}

/// Quantiles of a claimed speed-up; 1.5 means one and a half times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawQuantiles")]
pub struct Quantiles {
    /// The 10 % quantile.
    pub q10: f64,
    /// The median.
    pub q50: f64,
    /// The 90 % quantile.
    pub q90: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "quantiles such as { q10 = 1.0, q50 = 1.2, q90 = 1.5 }"
)]
#[schemars(rename = "Quantiles")]
struct RawQuantiles {
    /// The 10 % quantile.
    q10: f64,
    /// The median.
    q50: f64,
    /// The 90 % quantile.
    q90: f64,
}

impl TryFrom<RawQuantiles> for Quantiles {
    type Error = String;

    fn try_from(RawQuantiles { q10, q50, q90 }: RawQuantiles) -> Result<Self, String> {
        if q10 > 0.0 && q10 <= q50 && q50 <= q90 && q90.is_finite() {
            Ok(Self { q10, q50, q90 })
        } else {
            Err(format!(
                "speed-up quantiles {q10}, {q50}, {q90}: must be positive and rise from q10 to q90"
            ))
        }
    }
}

/// The chance given to each verdict; verdicts that are not named have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<Verdict, f64>", into = "BTreeMap<Verdict, f64>")]
#[schemars(transform = names_verdicts)]
pub struct Odds(BTreeMap<Verdict, f64>);

/// Says that the keys of a map are verdicts.
fn names_verdicts(schema: &mut Schema) {
    schema.insert("propertyNames".to_owned(), json!({ "enum": Verdict::ALL }));
}

impl TryFrom<BTreeMap<Verdict, f64>> for Odds {
    type Error = String;

    fn try_from(odds: BTreeMap<Verdict, f64>) -> Result<Self, String> {
        if let Some((verdict, chance)) = odds.iter().find(|(_, chance)| !(0.0..=1.0).contains(*chance)) {
            return Err(format!(
                "odds of {verdict} = {chance}: a chance lies between 0 and 1"
            ));
        }
        let sum: f64 = odds.values().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(format!(
                "the odds add up to {sum:.4}, not 1; name every verdict thought possible"
            ));
        }
        Ok(Self(odds))
    }
}

impl From<Odds> for BTreeMap<Verdict, f64> {
    fn from(odds: Odds) -> Self {
        odds.0
    }
}

impl Odds {
    /// The chance given to a verdict.
    pub fn of(&self, verdict: Verdict) -> f64 {
        self.0.get(&verdict).copied().unwrap_or(0.0)
    }
}

/// The cost of building a pitch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, try_from = "RawCost")]
pub struct Cost {
    /// Working hours.
    pub hours: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a cost such as { hours = 0.5 }")]
#[schemars(rename = "Cost")]
struct RawCost {
    /// Working hours.
    hours: f64,
}

impl TryFrom<RawCost> for Cost {
    type Error = String;

    fn try_from(RawCost { hours }: RawCost) -> Result<Self, String> {
        if hours >= 0.0 && hours.is_finite() {
            Ok(Self { hours })
        } else {
            Err(format!(
                "cost.hours = {hours}: must be a number of hours, 0 or more"
            ))
        }
    }
}

/// What may go wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Its level.
    pub level: RiskLevel,
    /// A description.
    pub why: String,
}

/// The risk that a pitch declares, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    /// Nothing can go wrong.
    None,
    /// Few things can.
    Low,
    /// Some things can.
    Medium,
    /// Many things can.
    High,
    /// Most things can.
    VeryHigh,
}

/// A reason to believe a pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The kind of evidence.
    pub kind: EvidenceKind,
    /// What it says.
    pub text: String,
}

/// Kinds of evidence, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Reasoning from how such kernels usually behave.
    Intuition,
    /// It works elsewhere.
    Precedent,
    /// Documentation or a paper.
    Reference,
    /// Arithmetic about this problem on this device.
    Calculation,
    /// A profile of this kernel.
    Profile,
    /// A measurement of this change.
    Measurement,
}

/// What to do if the pitch is not adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fallback {
    /// In words; "keep the baseline" is an answer.
    pub plan: String,
    /// A smaller change to try immediately in its place.
    #[serde(default)]
    pub schedule: Option<Parameters>,
}

/// The suffix of a fallback's name, after the pitch's own name.
pub const FALLBACK: &str = " (fallback)";

impl Pitch {
    /// Whether it names anything that changes what is built or run.
    pub fn changes_something(&self) -> bool {
        self.schedule != Parameters::default()
            || self.command.is_some()
            || self.dispatch.is_some()
            || self.kernel.is_some()
            || self.changes_source()
    }

    /// Whether it changes files of the round's source.
    pub fn changes_source(&self) -> bool {
        self.patch.is_some() || !self.files.is_empty()
    }

    /// The identity of a change: the changed words and the program.
    pub fn identity(&self) -> String {
        // A change that schedule words cannot express is identified by its sentence.
        if !self.changes_something() {
            return self.change.clone();
        }
        let dispatch = self.dispatch.as_ref();
        let dispatch = dispatch.map_or_else(String::new, |file| format!(" {}", file.display()));
        let recorded = self
            .recorded_loop
            .as_ref()
            .map_or_else(String::new, |name| format!(" {name}"));
        let kernel = self
            .kernel
            .as_ref()
            .map_or_else(String::new, |kernel| format!(" {kernel}"));
        format!(
            "{:?} {:?}{dispatch}{recorded}{kernel}",
            self.schedule, self.command
        )
    }

    /// The identity of the fallback, if there is one.
    pub fn identity_of_fallback(&self) -> Option<String> {
        let schedule = self.fallback.schedule.as_ref()?;
        Some(format!("{schedule:?} {:?}", None::<Vec<PathBuf>>))
    }
}
