//! A pitch's forecast, in the form that is stored with its verdict.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pitch::{Odds, Quantiles};
use crate::round::Round;
use gauntlet_judge::ExecutorKind;
use gauntlet_judge::Prediction;
use gauntlet_judge::Verdict;

/// The verdicts over which odds are scored: those that answer the question ([`Verdict::is_settled`]).
pub(super) const SETTLED: [Verdict; 9] = [
    Verdict::Adopt,
    Verdict::Marginal,
    Verdict::ValidNegative,
    Verdict::Regression,
    Verdict::Infeasible,
    Verdict::OverBudget,
    Verdict::DoesNotCompile,
    Verdict::Incorrect,
    Verdict::Racy,
];

/// A pitch's forecast, with the identity of the question and the model's prediction at the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Forecast {
    /// The author.
    #[serde(alias = "contestant")]
    pub author: String,
    /// The identity of the change (see [`Pitch::identity`](crate::Pitch::identity)).
    pub identity: String,
    /// The environment of the trial.
    pub scope: Scope,
    /// The digest that fixed the round.
    pub round_digest: String,
    /// The chance of each verdict.
    pub odds: Odds,
    /// The speed-up over the suite.
    pub speedup: Quantiles,
    /// Working hours.
    pub hours: f64,
    /// The model's prediction, if there is one.
    pub predicted: Option<Prediction>,
    /// Whether a rule of the device is broken.
    pub forbidden: bool,
    /// Whether the change differs from the candidate it is compared with.
    pub changes_something: bool,
    /// Whether the author withdrew it.
    pub withdrawn: bool,
    /// The fallback.
    pub fallback: Option<UntriedFallback>,
}

/// The environment of a trial; in another environment it is another question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Scope {
    /// The executor.
    pub executor: ExecutorKind,
    /// The device.
    pub device: String,
    /// The problems.
    pub suite: String,
}

/// A pitch's fallback; it claims nothing of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UntriedFallback {
    /// In words.
    pub plan: String,
    /// The model's prediction for it.
    pub predicted: Option<Prediction>,
    /// Whether a rule of the device is broken.
    pub forbidden: bool,
}

impl Scope {
    /// The environment in which a round tries its pitches.
    pub fn of(round: &Round) -> Self {
        let file = round.file();
        Self {
            executor: file.executor,
            device: round.setting.device.name.clone(),
            suite: file.suite.clone(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {} {}", self.executor, self.device, self.suite)
    }
}

impl Odds {
    /// The chances of the [`SETTLED`] verdicts, given that one of them is reached. Odds that leave them no chance say
    /// nothing about the answer, and count as even.
    pub(super) fn given_an_answer(&self) -> Vec<f64> {
        let sum: f64 = SETTLED.iter().map(|verdict| self.of(*verdict)).sum();
        let share = |verdict: &Verdict| {
            if sum > 0.0 {
                self.of(*verdict) / sum
            } else {
                1.0 / SETTLED.len() as f64
            }
        };
        SETTLED.iter().map(share).collect()
    }

    /// The chance of being stopped before any comparison (see [`Verdict::is_a_stop`]), given an answer.
    pub(super) fn of_a_stop(&self) -> f64 {
        let chances = self.given_an_answer();
        let stops = SETTLED
            .iter()
            .zip(chances)
            .filter(|(verdict, _)| verdict.is_a_stop());
        stops.map(|(_, chance)| chance).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn odds(chances: &[(Verdict, f64)]) -> Odds {
        Odds::try_from(chances.iter().copied().collect::<BTreeMap<_, _>>()).unwrap()
    }

    #[test]
    fn the_settled_verdicts_are_those_that_answer() {
        let settled: Vec<_> = Verdict::ALL
            .into_iter()
            .filter(|verdict| verdict.is_settled())
            .collect();
        assert_eq!(SETTLED.to_vec(), settled);
    }

    #[test]
    fn odds_are_taken_as_given_an_answer() {
        // Half of the odds say that there will be no answer; of the other half, 3 in 5 say adopt.
        let cautious = odds(&[
            (Verdict::Inconclusive, 0.5),
            (Verdict::Adopt, 0.3),
            (Verdict::Incorrect, 0.2),
        ]);
        let given = cautious.given_an_answer();
        assert!((given[0] - 0.6).abs() < 1e-12 && (given[7] - 0.4).abs() < 1e-12);
        assert!((cautious.of_a_stop() - 0.4).abs() < 1e-12);
        let silent = odds(&[(Verdict::Aborted, 1.0)]);
        assert!(
            silent
                .given_an_answer()
                .iter()
                .all(|chance| (chance - 1.0 / 9.0).abs() < 1e-12)
        );
    }
}
