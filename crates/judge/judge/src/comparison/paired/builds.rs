//! What both sides' programs compile once for all pairs, and the pair that may be measured once more.

use gauntlet_stats::Arm;

use super::{PairMeasured, PairedComparison};
use crate::evidence::{Candidate, JudgeError};
use crate::observer::Observer;
use crate::runner::{ExaminationFailure, side_by_side};

impl PairedComparison<'_> {
    /// Measures a pair once more after a failure that may not be the kernels': a worker died, or nothing has shown so far
    /// that both programs can do with only reading what their builds made.
    pub(super) fn once_more(
        &mut self,
        failure: ExaminationFailure,
        observer: &dyn Observer,
    ) -> Result<PairMeasured, ExaminationFailure> {
        let Some(error) = failure.worker_error() else {
            return Err(failure);
        };
        let gave_up = self.pairs_of_batch() == 0 && {
            let sides = [(Arm::Baseline, &self.baseline), (Arm::Candidate, &self.candidate)];
            let given_up = sides.map(|(arm, side)| self.workshop.give_up_build(arm, side));
            given_up.contains(&true)
        };
        if !gave_up && !error.is_death() {
            return Err(failure);
        }
        self.forgiven = true;
        let compiled = if gave_up {
            ", and compiles by itself, as every pair from now on"
        } else {
            ""
        };
        let name = &self.candidate.name;
        observer.notice(&format!(
            "{name}: {error}; the pair is measured once more{compiled}"
        ));
        self.try_pair(None, observer)
    }

    /// Builds both sides' own programs once, side by side, on the operands that every trial warms up on.
    pub(super) fn build_once(&self) -> Result<(), JudgeError> {
        let build = |arm, candidate: &Candidate| {
            self.workshop.build_once(arm, candidate, |worker| {
                for one in &self.cases {
                    let parameters = candidate.schedule_for(&one.case.sizes, &self.setting.device);
                    worker.build(&one.case.sizes, parameters)?;
                    worker.load(&[one.warm_up.operands.path()], 1)?;
                    worker.prepare()?;
                    worker.run(0)?;
                }
                Ok(())
            })
        };
        let (baseline, candidate) = side_by_side(
            || build(Arm::Baseline, &self.baseline),
            || build(Arm::Candidate, &self.candidate),
        );
        baseline.and(candidate).map(|_| ())
    }
}
