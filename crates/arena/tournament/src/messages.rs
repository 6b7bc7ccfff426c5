//! What contestants and panellists are asked and answer: the types of `docs/reference/contestants.md`.

use std::collections::BTreeMap;

use gauntlet_contestants::{Form, Used};
use gauntlet_judge::AbortRule;
use gauntlet_parameters::{Parameters, named};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pitch::Evidence;
use crate::round::GivenScores;
use crate::source::{Edit, SourceChange};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

named! {
    /// What is asked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Phase {
        /// What bounds the baseline.
        Research = "research",
        /// A right kernel in place of a wrong one.
        Mend = "mend",
        /// A pitch.
        Pitch = "pitch",
        /// A question to a contestant.
        Question = "question",
        /// The answer to a panellist's question.
        Answer = "answer",
        /// Scores and terms.
        Vote = "vote",
        /// Whether terms are accepted.
        Deal = "deal",
        /// The change itself.
        Build = "build",
        /// What was wrong with the forecast.
        Lesson = "lesson",
    }
}

impl Phase {
    /// What models are told of the phase.
    fn words(self) -> &'static str {
        match self {
            Self::Research => "Name what bounds the baseline's time, and your evidence.",
            Self::Mend => {
                "Your kernel was not right. Hand in a right one: until then you do not pitch on this kernel."
            }
            Self::Pitch => "Pitch one change to the kernel with a calibrated forecast, or pass.",
            Self::Question => "Ask one contestant one question about a pitch, or none.",
            Self::Answer => "Answer the panellist's question.",
            Self::Vote => {
                "Score each pitch from 0 to 10 on each dimension, with a reason and, where useful, terms."
            }
            Self::Deal => "Say whether you accept the panel's terms for your pitch, or withdraw it.",
            Self::Build => "Make the change that you pitched, and hand it in.",
            Self::Lesson => "Say what was wrong with your forecast, and what follows from the verdict.",
        }
    }

    /// What its answers look like.
    pub fn form(self) -> Form {
        let schema = match self {
            Self::Research => schema_for!(Research),
            Self::Mend | Self::Build => schema_for!(Build),
            Self::Pitch => schema_for!(Pitching),
            Self::Question => schema_for!(Asking),
            Self::Answer => schema_for!(Answering),
            Self::Vote => schema_for!(Voting),
            Self::Deal => schema_for!(Deal),
            Self::Lesson => schema_for!(Lesson),
        };
        Form {
            words: self.words().to_owned(),
            schema: schema.to_value(),
        }
    }
}

/// An exchange with a contestant or a panellist, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Message {
    /// Who was asked.
    pub who: String,
    /// What was asked.
    pub phase: Phase,
    /// The pitch that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pitch: Option<String>,
    /// A digest of the question.
    pub question: String,
    /// The answer, as it counts; none if there was none.
    pub answer: Option<Value>,
    /// A digest of the answer.
    pub digest: String,
    /// What was wrong with answers before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Whether that is the fault of the machine or the provider, and not of who was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blameless: bool,
    /// What it cost.
    pub used: Used,
}

/// The answer to [`Phase::Research`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Research {
    /// What bounds the baseline.
    pub bound_by: String,
    /// Why that is believed; at least one.
    pub evidence: Vec<Evidence>,
}

/// The answer to [`Phase::Pitch`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "one key, `pitch` or `pass`"
)]
pub enum Pitching {
    /// A pitch, with the keys of one in a file, but without `author`.
    Pitch(Map<String, Value>),
    /// Nothing, and why.
    Pass(String),
}

/// The answer to [`Phase::Question`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// The question; none asks nothing.
    #[serde(default)]
    pub question: Option<Question>,
}

/// A panellist's question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `to` and `text`")]
pub struct Question {
    /// The contestant who is asked.
    pub to: String,
    /// What.
    pub text: String,
}

/// The answer to [`Phase::Answer`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answering {
    /// The answer.
    pub text: String,
}

/// The answer to [`Phase::Vote`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Voting {
    /// One for each pitch; those left out follow from the written rules.
    pub votes: Vec<Vote>,
}

/// A panellist's view of a pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vote {
    /// The pitch.
    pub pitch: String,
    /// The scores; missing ones follow from the written rules.
    #[serde(default)]
    pub scores: GivenScores,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// Rules under which the pitch is to be given up.
    #[serde(default)]
    pub terms: Vec<AbortRule>,
    /// Whether the scores are 0 if the terms are not accepted.
    #[serde(default)]
    pub conditional: bool,
}

/// The answer to [`Phase::Deal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "one key, `accept` or `withdraw`"
)]
pub enum Deal {
    /// Whether the terms become rules of the pitch.
    Accept(bool),
    /// The pitch is withdrawn, and why.
    Withdraw(String),
}

/// The answer to [`Phase::Build`] and [`Phase::Mend`]: one of the first five, and `kernel` beside one of the first three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// True: the workspace as it now is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<bool>,
    /// New texts of files, by path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
    /// A unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Other words of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Parameters>,
    /// Nothing, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdraw: Option<String>,
    /// The kernel, if the function has another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// What an answer to [`Phase::Build`] comes to; this is what the ledger keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandedIn {
    /// A change to the source.
    Source(SourceChange),
    /// Other words of the schedule.
    Schedule(Parameters),
    /// Nothing, and why.
    Withdrawn(String),
}

impl Build {
    /// The change, or the reason of a withdrawal. `workspace` gives the change that was made in the workspace.
    ///
    /// # Errors
    /// If it is not exactly one of them, or the workspace cannot be read.
    pub fn handed_in(self, workspace: impl FnOnce() -> Result<Edit, String>) -> Result<HandedIn, String> {
        let Self {
            workspace: takes,
            files,
            patch,
            schedule,
            withdraw,
            kernel,
        } = self;
        let takes = takes.unwrap_or(false);
        let given = [
            takes,
            files.is_some(),
            patch.is_some(),
            schedule.is_some(),
            withdraw.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(
                "give exactly one of `workspace`, `files`, `patch`, `schedule` and `withdraw`".to_owned(),
            );
        }
        let edit = match (files, patch) {
            (Some(files), _) => Edit::Files(files),
            (None, Some(patch)) => Edit::Patch(patch),
            (None, None) if takes => workspace()?,
            (None, None) if kernel.is_some() => {
                return Err("`kernel` belongs to `workspace`, `files` or `patch`".to_owned());
            }
            (None, None) => {
                return Ok(match withdraw {
                    Some(why) => HandedIn::Withdrawn(why),
                    None => HandedIn::Schedule(schedule.unwrap_or_default()),
                });
            }
        };
        Ok(HandedIn::Source(SourceChange { edit, kernel }))
    }
}

/// The answer to [`Phase::Lesson`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// What was wrong with the forecast.
    pub wrong: String,
    /// What follows.
    pub follows: String,
}

/// The answers of every phase, by its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Answers {
    /// What bounds the baseline.
    pub research: Research,
    /// A right kernel in place of a wrong one.
    pub mend: Build,
    /// A pitch.
    pub pitch: Pitching,
    /// A question to a contestant.
    pub question: Asking,
    /// The answer to a panellist's question.
    pub answer: Answering,
    /// Scores and terms.
    pub vote: Voting,
    /// Whether terms are accepted.
    pub deal: Deal,
    /// The change itself.
    pub build: Build,
    /// What was wrong with the forecast.
    pub lesson: Lesson,
}
