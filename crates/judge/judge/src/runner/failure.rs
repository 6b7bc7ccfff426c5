//! Reasons why an examination could not be finished.

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
    /// A worker reported times that are impossible or cannot be believed.
    Void(String),
    /// The result of the candidate's timed calls is wrong.
    Wrong(String),
    /// The judge itself failed.
    Judge(JudgeError),
}

impl ExaminationFailure {
    /// The failure of a worker on that side.
    pub fn of(arm: Arm, error: WorkerError) -> Self {
        match arm {
            Arm::Baseline => Self::Baseline(error),
            Arm::Candidate => Self::Candidate(error),
        }
    }

    /// How a worker died, if that is the failure: a retry may succeed.
    pub fn death(&self) -> Option<&WorkerError> {
        self.worker_error().filter(|error| error.is_death())
    }

    /// How a worker failed, if that is the failure.
    pub fn worker_error(&self) -> Option<&WorkerError> {
        match self {
            Self::Candidate(error) | Self::Baseline(error) | Self::Judge(JudgeError::Executor(error)) => {
                Some(error)
            }
            _ => None,
        }
    }
}

impl<T: Into<JudgeError>> From<T> for ExaminationFailure {
    fn from(error: T) -> Self {
        Self::Judge(error.into())
    }
}
