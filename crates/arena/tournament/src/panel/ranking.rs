//! Turns scores into an order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Dimension, Dossier, Flag, Scores, rules};
use crate::forecast::{Roi, TrackRecord};
use crate::round::{GivenScores, PanelMember, Weights};

/// The weights of the recorded shark tank (`examples/shark-tank`).
pub(crate) const USUAL_WEIGHTS: Weights = Weights {
    speedup: 0.40,
    feasibility: 0.25,
    risk: 0.20,
    quality: 0.15,
};

/// The judges of a round; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    judges: Vec<PanelMember>,
    /// What the vote of each is worth.
    credits: Vec<f64>,
}

/// All pitches of a round, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// In order of rank.
    pub standings: Vec<Standing>,
    /// The inconsistencies.
    pub flags: Vec<Flag>,
}

/// The position of a pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Counted from 1.
    pub rank: usize,
    /// The pitch.
    pub pitch: String,
    /// The mean of the judges' totals, each weighted by its credit, from 0 to 10.
    pub mean: f64,
    /// Largest minus smallest total: 0 if the judges agree.
    pub spread: f64,
    /// The expected return on an hour spent on it; not part of the scores.
    pub roi: Option<Roi>,
    /// The author's record at the time of the ranking.
    pub record: TrackRecord,
    /// Each judge's assessment, in the order of the judges.
    pub judgements: Vec<Judgement>,
}

/// One judge's assessment of a pitch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The judge.
    pub judge: String,
    /// The scores, given by hand or by rule, with reasons.
    pub scores: Scores,
    /// The judge's weighted sum of them.
    pub total: f64,
    /// What it counts beside the others, by how the judge's earlier votes came true; 1 if nothing is known.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub credit: f64,
    /// The total that the judge printed, if any.
    pub printed: Option<f64>,
}

impl Panel {
    /// A panel of these judges; if there are none, one judge with the usual weights who follows the rules.
    pub fn new(judges: &[PanelMember]) -> Self {
        if judges.is_empty() {
            let rules = PanelMember {
                name: "the rules".to_owned(),
                weights: USUAL_WEIGHTS,
                scores: BTreeMap::new(),
            };
            return Self {
                judges: vec![rules],
                credits: vec![1.0],
            };
        }
        Self {
            judges: judges.to_vec(),
            credits: vec![1.0; judges.len()],
        }
    }

    /// The same with votes that count by how earlier ones came true.
    pub fn with_credit(self, credit: impl Fn(&str) -> f64) -> Self {
        Self {
            credits: self.judges.iter().map(|judge| credit(&judge.name)).collect(),
            ..self
        }
    }

    /// Scores every pitch and orders them by mean total, withdrawn ones last. Ties go to the lower risk (the judges'
    /// mean score), then to the lower cost, then to the closer agreement of the judges, then to the given order.
    pub fn rank(&self, dossiers: &[Dossier]) -> Ranking {
        let mut entries: Vec<_> = dossiers
            .iter()
            .map(|dossier| (dossier, self.standing(dossier)))
            .collect();
        entries.sort_by_key(|(dossier, standing)| {
            (
                dossier.pitch.withdrawn.is_some(),
                Reverse(comparable(standing.mean)),
                Reverse(comparable(mean_risk(standing))),
                comparable(dossier.pitch.cost.hours),
                comparable(standing.spread),
            )
        });
        let standings = entries
            .into_iter()
            .enumerate()
            .map(|(index, (_, standing))| Standing {
                rank: index + 1,
                ..standing
            })
            .collect();
        Ranking {
            standings,
            flags: self.flags(dossiers),
        }
    }

    fn standing(&self, dossier: &Dossier) -> Standing {
        let by_rule = rules::scores(dossier);
        let judgements: Vec<_> = self
            .judges
            .iter()
            .zip(&self.credits)
            .map(|(judge, credit)| judgement(judge, *credit, &dossier.pitch.name, by_rule.clone()))
            .collect();
        let totals = || judgements.iter().map(|judgement| judgement.total);
        let weighted = judgements
            .iter()
            .map(|judgement| judgement.total * judgement.credit);
        let mean = weighted.sum::<f64>() / self.credits.iter().sum::<f64>();
        let spread = totals().fold(f64::MIN, f64::max) - totals().fold(f64::MAX, f64::min);
        Standing {
            rank: 0,
            pitch: dossier.pitch.name.clone(),
            mean,
            spread,
            roi: dossier.roi(),
            record: dossier.record,
            judgements,
        }
    }

    fn flags(&self, dossiers: &[Dossier]) -> Vec<Flag> {
        let mut flags = Vec::new();
        for dossier in dossiers {
            let pitch = &dossier.pitch.name;
            flags.extend(Flag::on_confidence(dossier));
            for judge in &self.judges {
                let given = given_by(judge, pitch);
                flags.extend(Flag::on_arithmetic(&judge.name, pitch, &given, &judge.weights));
                flags.extend(Flag::on_feasibility(&judge.name, dossier, &given));
            }
        }
        flags
    }
}

fn judgement(judge: &PanelMember, credit: f64, pitch: &str, by_rule: Scores) -> Judgement {
    let given = given_by(judge, pitch);
    let scores = by_rule.overridden(&judge.name, &given);
    let total = scores.total(&judge.weights);
    Judgement {
        judge: judge.name.clone(),
        scores,
        total,
        credit,
        printed: given.printed,
    }
}

fn unknown() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_unknown(credit: &f64) -> bool {
    (*credit - 1.0).abs() < f64::EPSILON
}

fn given_by(judge: &PanelMember, pitch: &str) -> GivenScores {
    judge.scores.get(pitch).copied().unwrap_or_default()
}

fn mean_risk(standing: &Standing) -> f64 {
    let risks = standing
        .judgements
        .iter()
        .map(|judgement| judgement.scores.of(Dimension::Risk).value);
    risks.sum::<f64>() / standing.judgements.len() as f64
}

/// A number in millionths, so that sums of decimal fractions that are equal on paper compare equal.
fn comparable(value: f64) -> i64 {
    (value * 1e6).round() as i64
}

#[cfg(test)]
mod tests;
