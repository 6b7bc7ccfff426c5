//! The result of a comparison, and the ground for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sign_flip::smallest_p_value;
use crate::verdict::claim_refuted;
use crate::{ClockCheck, Criteria, Decision, FloorFinding, Interval, Origin, SlowPairs};

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assessment {
    /// The decision on the suite, floors included.
    pub decision: Decision,
    /// The ground for the decision.
    pub ground: Ground,
    /// The geometric mean speed-up over the suite; none without enough evidence.
    pub suite: Option<Interval>,
    /// Each problem, in the order given.
    pub problems: Vec<ProblemFinding>,
    /// The smallest speed-up that the suite's interval could have distinguished from zero, as a fraction.
    pub smallest_visible_effect: Option<f64>,
    /// Two-sided p-value of "no difference" over the suite by the sign-flip test (see [`SignFlip`](crate::SignFlip)); only for
    /// measured problems. A second opinion that is reported and decides nothing: see
    /// [`Assessment::sign_flip_agrees`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_flip_p_value: Option<f64>,
    /// How many pairs of processes an inconclusive measurement would have needed, if its estimate and spread
    /// are the true ones (see [`needed_processes`](crate::needed_processes())).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_processes: Option<usize>,
    /// What the clocks say about the suite's speed-up; none without clocks for every time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockCheck>,
    /// Which pairs of processes were far from the typical one, and what so many pairs cannot show; only for measured problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_pairs: Option<SlowPairs>,
}

/// The ground for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "on", rename_all = "kebab-case")]
pub enum Ground {
    /// The suite's interval.
    SuiteInterval,
    /// A suite that would have been adopted or marginal, but is a regression on these problems.
    BrokenFloor {
        /// Names of the problems under the floor.
        problems: Vec<String>,
        /// What the suite's interval alone would have said.
        otherwise: Decision,
    },
    /// The typical pair is faster, but the candidate was slow in more pairs than the baseline, and the mean over all pairs is
    /// not shown to be faster as well.
    SlowPairs {
        /// What the typical pair alone would have said.
        otherwise: Decision,
    },
    /// There is no interval, so no decision is possible.
    NoInterval,
    /// The way in which the times were measured allows no decision.
    Design {
        /// Why.
        reason: String,
        /// What the figures alone would have said.
        otherwise: Decision,
    },
}

/// One problem of the suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemFinding {
    /// The problem's name in the suite.
    pub name: String,
    /// Its speed-up, at the same confidence as the suite's and not corrected for the number of problems.
    pub interval: Option<Interval>,
    /// How it compares with the floor.
    pub floor: FloorFinding,
    /// Holm's adjusted p-value of "under the floor"; only for measured problems.
    pub adjusted_p_value: Option<f64>,
}

impl Assessment {
    /// Whether the suite's interval refutes a claim, by the rule of [`claim_refuted`](crate::claim_refuted);
    /// none without an interval.
    pub fn claim_refuted(&self, lowest_claimed: f64) -> Option<bool> {
        self.suite
            .as_ref()
            .map(|interval| claim_refuted(interval, lowest_claimed))
    }

    /// Whether the sign-flip test also sees the difference that the suite's interval sees; none when the interval holds
    /// zero, or nothing was measured.
    ///
    /// The test agrees if its p-value is at most the interval's error, or is the lowest that this number of processes
    /// can give. A disagreement is only worth a warning: with few processes the test sees less than the interval, which
    /// keeps its level on the noise it was tried on (see [`Effect::interval`](crate::Effect::interval)). An agreement does not turn
    /// an inconclusive interval into a decision.
    pub fn sign_flip_agrees(&self) -> Option<bool> {
        let (interval, p_value) = (self.suite.as_ref()?, self.sign_flip_p_value?);
        let Origin::Measured {
            confidence,
            processes,
        } = interval.origin
        else {
            return None;
        };
        let sees_difference = interval.lower > 0.0 || interval.upper < 0.0;
        sees_difference.then(|| p_value <= (1.0 - confidence).max(smallest_p_value(processes)))
    }

    /// The same with the pairs that are far from the typical one. If the candidate was slow in more of them than the baseline, a
    /// gain must hold for the mean as well: an adoption needs the mean's interval at or over the target, a marginal gain over
    /// zero. Otherwise rare and very slow processes, which do not move the typical pair, would be adopted in silence.
    pub(crate) fn with_slow_pairs(mut self, slow_pairs: SlowPairs, criteria: &Criteria) -> Self {
        let least = slow_pairs.mean.lower;
        let shown_by_mean = match self.decision {
            Decision::Adopt => least >= criteria.log_target(),
            Decision::Marginal => least > 0.0,
            _ => true,
        };
        if !shown_by_mean && slow_pairs.tell_against_the_candidate() {
            self.ground = Ground::SlowPairs {
                otherwise: self.decision,
            };
            self.decision = Decision::Inconclusive;
        }
        self.slow_pairs = Some(slow_pairs);
        self
    }

    /// The same figures without a decision, because the way in which they were measured allows none.
    pub fn undecided(self, reason: impl Into<String>) -> Self {
        Self {
            decision: Decision::Inconclusive,
            ground: Ground::Design {
                reason: reason.into(),
                otherwise: self.decision,
            },
            needed_processes: None,
            ..self
        }
    }

    pub(crate) fn named(&self, floor: FloorFinding) -> Vec<&str> {
        let found = self.problems.iter().filter(|problem| problem.floor == floor);
        found.map(|problem| problem.name.as_str()).collect()
    }
}
