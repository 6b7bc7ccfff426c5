//! After the verdicts: what contestants learn.

use serde_json::json;

use super::super::history::History;
use super::{Inquiry, Player, Situation, accepted};
use crate::error::TournamentError;
use crate::messages::{Lesson, Phase};
use crate::outcome::Judged;

impl Player<'_> {
    /// Asks each contestant what was wrong with its forecast, and keeps the answer for later rounds.
    pub(in crate::play) fn learned(
        &self,
        judged: &[Judged],
        situation: &Situation,
        history: &mut History,
    ) -> Result<(), TournamentError> {
        for pitch in &self.round.pitches {
            let one = judged.iter().find(|one| one.name == pitch.name);
            let (Some(one), Some(who)) = (one, self.contestant_of(pitch)) else {
                continue;
            };
            let findings = one.findings.iter();
            let findings: Vec<_> = findings
                .map(|finding| json!({ "gate": finding.gate, "reason": finding.reason }))
                .collect();
            let inquiry = Inquiry {
                who,
                phase: Phase::Lesson,
                pitch: Some(&pitch.name),
                more: json!({
                    "pitch": pitch,
                    "verdict": one.verdict,
                    "reason": one.reason,
                    "found": one.factor(),
                    "findings": findings,
                }),
            };
            let answer = self.asked(&inquiry, situation, None, &|lesson: Lesson| Ok(json!(lesson)))?;
            if let Some(answer) = answer {
                let lesson: Lesson = accepted(answer)?;
                let text = format!("{}; {}", lesson.wrong, lesson.follows);
                history.learns(&self.round.file().name, &pitch.name, text);
            }
        }
        Ok(())
    }
}
