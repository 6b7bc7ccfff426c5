//! Scores from 0 to 10, each with its reason.

use gauntlet_parameters::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::round::{GivenScores, Weights};

named! {
    /// The dimensions of a score.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Dimension {
        /// The expected speed-up.
        Speedup = "speed-up",
        /// Whether it can be built.
        Feasibility = "feasibility",
        /// Freedom from risk: 10 means no risk.
        Risk = "risk",
        /// How well it is argued.
        Quality = "quality",
    }
}

impl Dimension {
    /// The dimension's weight for a judge.
    pub(super) fn weight(self, weights: &Weights) -> f64 {
        match self {
            Self::Speedup => weights.speedup,
            Self::Feasibility => weights.feasibility,
            Self::Risk => weights.risk,
            Self::Quality => weights.quality,
        }
    }

    /// The score that a judge gave by hand.
    pub(super) fn given(self, scores: &GivenScores) -> Option<f64> {
        match self {
            Self::Speedup => scores.speedup,
            Self::Feasibility => scores.feasibility,
            Self::Risk => scores.risk,
            Self::Quality => scores.quality,
        }
    }
}

/// A score and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// From 0 to 10.
    pub value: f64,
    /// The source of the score.
    pub origin: Origin,
    /// One sentence with the figures used.
    pub reason: String,
}

/// The source of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The written rules.
    Rule,
    /// The judge, by hand, in the round file.
    Given,
}

/// One score for each dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scores {
    /// See [`Dimension::Speedup`].
    pub speedup: Score,
    /// See [`Dimension::Feasibility`].
    pub feasibility: Score,
    /// See [`Dimension::Risk`].
    pub risk: Score,
    /// See [`Dimension::Quality`].
    pub quality: Score,
}

impl Score {
    /// A score by rule, clamped to 0…10.
    pub(super) fn by_rule(value: f64, reason: String) -> Self {
        Self {
            value: value.clamp(0.0, 10.0),
            origin: Origin::Rule,
            reason,
        }
    }
}

impl Scores {
    /// The score on a dimension.
    pub fn of(&self, dimension: Dimension) -> &Score {
        match dimension {
            Dimension::Speedup => &self.speedup,
            Dimension::Feasibility => &self.feasibility,
            Dimension::Risk => &self.risk,
            Dimension::Quality => &self.quality,
        }
    }

    /// The weighted sum, from 0 to 10.
    pub fn total(&self, weights: &Weights) -> f64 {
        Dimension::ALL
            .into_iter()
            .map(|dimension| dimension.weight(weights) * self.of(dimension).value)
            .sum()
    }

    /// These scores, with the scores that a judge gave by hand replacing them.
    pub(super) fn overridden(mut self, judge: &str, given: &GivenScores) -> Self {
        for dimension in Dimension::ALL {
            let Some(value) = dimension.given(given) else {
                continue;
            };
            let score = match dimension {
                Dimension::Speedup => &mut self.speedup,
                Dimension::Feasibility => &mut self.feasibility,
                Dimension::Risk => &mut self.risk,
                Dimension::Quality => &mut self.quality,
            };
            let reason = format!("{judge} gives {value}; the rules would give {:.1}", score.value);
            *score = Score {
                value,
                origin: Origin::Given,
                reason,
            };
        }
        self
    }
}
