//! The verdict on a candidate.

use std::fmt;

use gauntlet_stats::Decision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the gates conclude about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Faster by at least the target.
    Adopt,
    /// Faster, by less than the target.
    Marginal,
    /// Shown to make no practical difference.
    ValidNegative,
    /// Shown to be slower, in the mean or by more than the floor on one problem.
    Regression,
    /// The measurements allow more than one answer.
    Inconclusive,
    /// The device cannot run it.
    Infeasible,
    /// It exceeds a resource budget.
    OverBudget,
    /// The compiler rejects it.
    DoesNotCompile,
    /// Its result is wrong.
    Incorrect,
    /// Its result changes from run to run, or a checker found a race.
    Racy,
    /// Stopped by its own rules or withdrawn by its author.
    Aborted,
    /// It could not be judged: something that the judgement needs is missing.
    Blocked,
}

impl Verdict {
    /// All verdicts, the measured ones first.
    pub const ALL: [Self; 12] = [
        Self::Adopt,
        Self::Marginal,
        Self::ValidNegative,
        Self::Regression,
        Self::Inconclusive,
        Self::Infeasible,
        Self::OverBudget,
        Self::DoesNotCompile,
        Self::Incorrect,
        Self::Racy,
        Self::Aborted,
        Self::Blocked,
    ];

    /// Whether the question is answered, so that the same change can be pitched again only with new evidence.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Inconclusive | Self::Aborted | Self::Blocked)
    }
}

impl Verdict {
    /// Whether the candidate itself failed before any comparison: infeasible, over budget, does not compile, incorrect
    /// or racy.
    pub fn is_a_stop(self) -> bool {
        use Verdict::{DoesNotCompile, Incorrect, Infeasible, OverBudget, Racy};
        matches!(self, Infeasible | OverBudget | DoesNotCompile | Incorrect | Racy)
    }

    /// The statement about a candidate that a gate stopped, to follow its name.
    pub fn sentence(self) -> String {
        match self {
            Self::DoesNotCompile => self.to_string(),
            _ => format!("is {self}"),
        }
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Adopt => Self::Adopt,
            Decision::Marginal => Self::Marginal,
            Decision::ValidNegative => Self::ValidNegative,
            Decision::Regression => Self::Regression,
            Decision::Inconclusive => Self::Inconclusive,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Adopt => "adopt",
            Self::Marginal => "marginal",
            Self::ValidNegative => "valid negative",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::Infeasible => "infeasible",
            Self::OverBudget => "over budget",
            Self::DoesNotCompile => "does not compile",
            Self::Incorrect => "incorrect",
            Self::Racy => "racy",
            Self::Aborted => "aborted",
            Self::Blocked => "blocked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_a_candidate_is_said_of_it() {
        let said = |verdict: Verdict| format!("the baseline {}", verdict.sentence());
        assert_eq!(said(Verdict::DoesNotCompile), "the baseline does not compile");
        assert_eq!(said(Verdict::OverBudget), "the baseline is over budget");
    }
}
