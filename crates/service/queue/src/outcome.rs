//! What becomes of a ticket.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::judgement::JudgementKind;

/// Where a ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It waits.
    Queued,
    /// An attempt is under way.
    Running,
    /// Evidence answers the question, in either way.
    Decided,
    /// It was judged, and the evidence allows more than one answer.
    Undecided,
    /// It could not be judged: times are not credible, or something that the judgement needs is missing.
    Void,
    /// Its words or sources are wrong, or three attempts died.
    Failed,
    /// Its client gave it up.
    Cancelled,
}

impl State {
    /// Whether it stays so.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// The word for it, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Decided => "decided",
            Self::Undecided => "undecided",
            Self::Void => "void",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        use State::{Cancelled, Decided, Failed, Queued, Running, Undecided, Void};
        let all = [Queued, Running, Decided, Undecided, Void, Failed, Cancelled];
        all.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a job found, as it is published: the first one of a ticket counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JobResult {
    /// The kind of document, in its version.
    pub schema: String,
    /// The ticket.
    pub ticket: String,
    /// The attempt that found it: host, process, and the scheduler's job if there is one.
    pub attempt: String,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// The exit code of the command that judged.
    pub exit: i32,
    /// `decided`, `undecided`, `void` or `failed`.
    pub state: State,
    /// The verdict of a comparison, such as `adopt`; of a check `right` or `not-right`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The report: Markdown of a comparison, else what the command printed; of a failure its message.
    pub report: String,
    /// The whole result, as `--json` of the command writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl JobResult {
    /// The kind of document, in its version.
    pub const SCHEMA: &'static str = "gauntlet/job-result/1";

    /// Whether the candidate was shown to be faster by the target. That is a win only after a second comparison.
    pub fn is_adopted(&self) -> bool {
        self.verdict.as_deref() == Some("adopt")
    }
}

/// State and verdict of what a command found; none if it found nothing that could be published.
pub(crate) fn of_exit(
    command: JudgementKind,
    exit: Option<i32>,
    result: Option<&Value>,
) -> Option<(State, Option<String>)> {
    let is_judged = matches!(exit, Some(0 | 1 | 4));
    match (exit, command) {
        // What was given is wrong, and stays wrong.
        (Some(2), _) => Some((State::Failed, None)),
        (_, JudgementKind::Compare | JudgementKind::Judge) if is_judged => {
            let verdict = result?.get("verdict")?.as_str()?;
            let state = match verdict {
                "inconclusive" | "aborted" => State::Undecided,
                "blocked" => State::Void,
                _ => State::Decided,
            };
            Some((state, Some(verdict.to_owned())))
        }
        (Some(0), JudgementKind::Check) => Some((State::Decided, Some("right".to_owned()))),
        (Some(1), JudgementKind::Check) => Some((State::Decided, Some("not-right".to_owned()))),
        (Some(0 | 1), JudgementKind::Tune) => Some((State::Decided, None)),
        (Some(0), JudgementKind::Errand) => result.map(|_| (State::Decided, None)),
        // Without a document nothing was judged: the machine was busy, or in want of something.
        (Some(4), JudgementKind::Check) => result.map(|_| (State::Void, None)),
        (Some(4), JudgementKind::Tune) => result.map(|_| (State::Undecided, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_evidence_decides() {
        let compare = |exit, verdict: &str| {
            of_exit(
                JudgementKind::Compare,
                Some(exit),
                Some(&json!({ "verdict": verdict })),
            )
            .map(|(state, _)| state)
        };
        assert_eq!(compare(0, "adopt"), Some(State::Decided));
        assert_eq!(compare(0, "regression"), Some(State::Decided));
        assert_eq!(compare(1, "incorrect"), Some(State::Decided));
        assert_eq!(compare(0, "inconclusive"), Some(State::Undecided));
        assert_eq!(compare(4, "blocked"), Some(State::Void));
        assert_eq!(compare(3, "adopt"), None, "something broke");
        assert_eq!(compare(130, "inconclusive"), None, "an interrupt is no verdict");
        let none = |exit| of_exit(JudgementKind::Judge, exit, None);
        assert_eq!(none(Some(0)), None, "no result was written");
        assert_eq!(none(None), None, "killed");
        assert_eq!(none(Some(2)), Some((State::Failed, None)));
        let check = |exit| of_exit(JudgementKind::Check, Some(exit), None).unwrap();
        assert_eq!(check(1), (State::Decided, Some("not-right".to_owned())));
    }
}
