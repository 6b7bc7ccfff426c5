//! Inconsistencies in a panel's scores.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dossier;
use super::rules::is_overconfident;
use crate::round::{GivenScores, Weights};

/// An inconsistency in a judge's scores or a pitch's promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "flag", rename_all = "kebab-case")]
pub enum Flag {
    /// A judge's printed score does not match the judge's own scores and weights.
    Arithmetic {
        /// The judge.
        judge: String,
        /// The pitch.
        pitch: String,
        /// The printed score.
        printed: f64,
        /// The score that the weights give.
        computed: f64,
    },
    /// A judge gives feasibility to a pitch that the device forbids.
    ScoredAgainstRule {
        /// The judge.
        judge: String,
        /// The pitch.
        pitch: String,
        /// The score given for feasibility.
        given: f64,
        /// The rule that it breaks.
        violation: String,
    },
    /// A pitch that admits no chance of failure.
    Overconfident {
        /// The pitch.
        pitch: String,
    },
}

impl fmt::Display for Flag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arithmetic {
                judge,
                pitch,
                printed,
                computed,
            } => {
                // Rounded, so that 8.575 does not show as 8.5749999.
                let computed = (computed * 1e6).round() / 1e6;
                write!(
                    formatter,
                    "judge {judge} prints {printed} for {pitch}; the judge's own weights give {computed}"
                )
            }
            Self::ScoredAgainstRule {
                judge,
                pitch,
                given,
                violation,
            } => {
                write!(
                    formatter,
                    "judge {judge} gives {pitch} {given} for feasibility, but {violation}"
                )
            }
            Self::Overconfident { pitch } => {
                write!(
                    formatter,
                    "{pitch} declares no risk and gives harm no chance; that is not believed"
                )
            }
        }
    }
}

impl Flag {
    /// Flags a printed score that the arithmetic does not confirm. Applies only if every score with a weight was given
    /// by hand: a judge never added up scores that the rules filled in.
    pub(super) fn on_arithmetic(
        judge: &str,
        pitch: &str,
        given: &GivenScores,
        weights: &Weights,
    ) -> Option<Self> {
        let computed = given_total(given, weights)?;
        let printed = given.printed?;
        let allowed = rounding(printed);
        ((printed - computed).abs() > allowed).then(|| Self::Arithmetic {
            judge: judge.to_owned(),
            pitch: pitch.to_owned(),
            printed,
            computed,
        })
    }

    /// Flags a feasibility over 0 for a pitch that the device forbids.
    pub(super) fn on_feasibility(judge: &str, dossier: &Dossier, given: &GivenScores) -> Option<Self> {
        let given = given.feasibility.filter(|score| *score > 0.0)?;
        let violation = dossier.violations.first()?.clone();
        Some(Self::ScoredAgainstRule {
            judge: judge.to_owned(),
            pitch: dossier.pitch.name.clone(),
            given,
            violation,
        })
    }

    /// Flags a pitch that admits no chance of failure.
    pub(super) fn on_confidence(dossier: &Dossier) -> Option<Self> {
        is_overconfident(dossier.pitch).then(|| Self::Overconfident {
            pitch: dossier.pitch.name.clone(),
        })
    }
}

/// The weighted sum of scores given by hand; none if a score with a weight is missing.
fn given_total(given: &GivenScores, weights: &Weights) -> Option<f64> {
    super::Dimension::ALL
        .into_iter()
        .filter(|dimension| dimension.weight(weights) > 0.0)
        .map(|dimension| Some(dimension.weight(weights) * dimension.given(given)?))
        .sum()
}

/// Half a unit in the last printed decimal, plus a small tolerance for binary fractions. At least one decimal is
/// assumed, because a number in a file does not keep the zero of 8.0.
fn rounding(printed: f64) -> f64 {
    let text = printed.to_string();
    let decimals = text
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len())
        .max(1);
    0.5 * 10f64.powf(-(decimals as f64)) + 1e-9
}
