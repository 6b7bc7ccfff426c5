//! What the device does in calls, traced in workers of their own after the timed calls: tracing slows calls down.

use gauntlet_stats::Arm;
use gauntlet_worker::protocol::CallActivity;
use gauntlet_worker::{WorkerError, WorkerProcess, most_calls};
use rand::{RngExt, rng};

use super::{CaseSoFar, Checker, PairedComparison};
use crate::evidence::{Candidate, CaseActivity, DeviceActivity, SideActivity};
use crate::runner::{ExaminationFailure, fetch};

/// Calls traced for each case.
const CALLS: usize = 3;

impl PairedComparison<'_> {
    /// What the device does in both sides' calls; none if that is not asked for, on a CPU, or if neither worker can tell.
    ///
    /// # Errors
    /// If a result of a traced call is wrong. A side that cannot be traced is no failure.
    pub(super) fn traced(&self) -> Result<Option<DeviceActivity>, ExaminationFailure> {
        let asked_for = self.tells_activity.filter(|_| self.setting.measurement.activity);
        let Some([baseline, candidate]) = asked_for.filter(|sides| sides.contains(&true)) else {
            return Ok(None);
        };
        Ok(Some(DeviceActivity {
            baseline: self.side(Arm::Baseline, &self.baseline, baseline)?,
            candidate: self.side(Arm::Candidate, &self.candidate, candidate)?,
        }))
    }

    fn side(
        &self,
        arm: Arm,
        side: &Candidate,
        tells_activity: bool,
    ) -> Result<SideActivity, ExaminationFailure> {
        let mut traced = SideActivity::default();
        if !tells_activity {
            traced.untraced = Some("its worker does not trace the device".to_owned());
            return Ok(traced);
        }
        let failed = |failure: ExaminationFailure| match failure.worker_error() {
            // A message may end with lines of the worker's standard error.
            Some(error) => Ok(error.to_string().lines().next().unwrap_or_default().to_owned()),
            None => Err(failure),
        };
        let mut worker = match self.workshop.start_trial(arm, side) {
            Ok((worker, _)) => worker,
            Err(failure) => {
                traced.untraced = Some(failed(failure)?);
                return Ok(traced);
            }
        };
        // It reads operands and writes results by itself: nothing here is timed.
        worker.release();
        for one in &self.cases {
            match self.case(arm, side, &mut worker, one) {
                Ok(calls) => traced.cases.push(CaseActivity::of(&one.case.name, &calls)),
                Err(failure) => {
                    traced.untraced = Some(failed(failure)?);
                    break;
                }
            }
        }
        Ok(traced)
    }

    /// Traces calls of a case on as many copies of operands as timed calls rotate over, and checks the result of one.
    fn case(
        &self,
        arm: Arm,
        side: &Candidate,
        worker: &mut WorkerProcess,
        one: &CaseSoFar,
    ) -> Result<Vec<CallActivity>, ExaminationFailure> {
        let (sizes, operands) = (&one.case.sizes, &one.warm_up.operands);
        let copies: Vec<usize> = (0..CALLS.min(most_calls(sizes)))
            .map(|call| call % one.copies.max(1))
            .collect();
        let mut trace = || -> Result<Vec<CallActivity>, WorkerError> {
            worker.build(sizes, side.schedule_for(sizes, &self.setting.device))?;
            worker.load(&[operands.path()], one.copies.max(1))?;
            worker.prepare()?;
            // The first call compiles and allocates.
            worker.run(0)?;
            worker.activity(&copies)
        };
        let calls = trace().map_err(|error| ExaminationFailure::of(arm, error))?;
        let drawn = rng().random_range(0..copies.len());
        let output =
            fetch(self.workshop, worker, sizes, drawn).map_err(|error| ExaminationFailure::of(arm, error))?;
        let mut checker = Checker::of_traced(self.workshop, &self.setting.rules, one.case, &one.warm_up);
        checker.check(arm, 0, &output)?;
        checker.files_are_untouched()?;
        Ok(calls)
    }
}
