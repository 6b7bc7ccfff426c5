//! Why a candidate could not be examined to the end.

use gauntlet_stats::Arm;
use gauntlet_worker::WorkerError;

use crate::evidence::JudgeError;

/// Why an examination could not be finished.
#[derive(Debug)]
pub enum ExaminationFailure {
    /// The candidate's worker failed.
    Candidate(WorkerError),
    /// The baseline's worker failed.
    Baseline(WorkerError),
    /// A worker reported times that cannot be, or does not deserve to be believed.
    Void(String),
    /// What the candidate computed while it was timed is wrong.
    Wrong(String),
    /// The judge itself failed.
    Judge(JudgeError),
}

impl ExaminationFailure {
    /// The failure of a worker of that side.
    pub fn of(arm: Arm, error: WorkerError) -> Self {
        match arm {
            Arm::Baseline => Self::Baseline(error),
            Arm::Candidate => Self::Candidate(error),
        }
    }

    /// How a worker died, if that is what failed: another may live.
    pub fn death(&self) -> Option<&WorkerError> {
        let (Self::Candidate(error) | Self::Baseline(error) | Self::Judge(JudgeError::Executor(error))) =
            self
        else {
            return None;
        };
        Some(error).filter(|error| error.is_death())
    }
}

impl<T: Into<JudgeError>> From<T> for ExaminationFailure {
    fn from(error: T) -> Self {
        Self::Judge(error.into())
    }
}
