//! The looks of a comparison in progress: which one comes next, and what it sees.

use gauntlet_stats::{Assessment, Decision, LookNumber, Sample, compare};

use super::{PairedComparison, charged};
use crate::evidence::{JudgeError, Look, Trust};
use crate::runner::ExaminationFailure;

impl PairedComparison<'_> {
    /// Whether there is something to see beyond the last look: more pairs, or for an undecided comparison that is open-ended the
    /// share of the error that is kept for the end.
    pub(super) fn deserves_closing(&self, last: &Look) -> bool {
        let is_undecided = self.assessment.decision == Decision::Inconclusive
            && self
                .suspicion
                .is_none_or(|suspicion| suspicion.least_gain().is_some());
        self.pairs > last.processes || (self.setting.measurement.open_ended && is_undecided)
    }

    /// Looks at what was measured, at one of the fixed numbers of pairs or because the time is up.
    pub(super) fn look(&mut self, closing: bool) -> Result<(), ExaminationFailure> {
        self.assessment = self.assess(closing)?;
        self.suspicion = self.conduct()?.and_then(|conduct| conduct.suspicion);
        self.looks.push(Look {
            processes: self.pairs,
            interval: self.assessment.suite.clone(),
            decision: self.assessment.decision,
            closing,
        });
        Ok(())
    }

    /// What the next look of a kind sees.
    pub(super) fn assess(&self, closing: bool) -> Result<Assessment, JudgeError> {
        let mut problems = Vec::new();
        for one in &self.cases {
            let blocks = match self.setting.measurement.trust {
                Trust::Watched => charged(&one.blocks, &one.conduct),
                Trust::Quick => one.blocks.clone(),
            };
            problems.push((one.case.name.clone(), Sample::from_blocks(&blocks)?));
        }
        let number = 1 + self.looks.iter().filter(|look| look.closing == closing).count();
        let look = match closing {
            true => LookNumber::Closing(number),
            false => LookNumber::Fixed(number),
        };
        Ok(compare(&problems, &self.setting.criteria, look, self.test_seed)?)
    }
}
