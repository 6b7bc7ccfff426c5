//! Errors that stop the self-test.

use gauntlet_judge::{ExaminationFailure, JudgeError};
use gauntlet_task::SuiteError;
use gauntlet_worker::WorkerError;
use thiserror::Error;

use super::effect::Effect;

/// Errors of the self-test. None of them says anything about the verdicts: shares need all comparisons.
#[derive(Debug, Error)]
pub enum CharacteristicsError {
    /// Criteria or blocks that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
    /// The judge failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The suite of the live comparisons, which is built into the program, is invalid.
    #[error("the self-test's own suite: {0}; report it, it is a fault of this program")]
    Suite(#[from] SuiteError),
    /// A worker of a live comparison failed.
    #[error(
        "the {arm}'s worker failed in a live comparison ({effect}): {source}; `gauntlet doctor` says what this machine \
         lacks, and `--live 0` leaves real workers out"
    )]
    Worker {
        /// Baseline or candidate.
        arm: &'static str,
        /// The injected effect.
        effect: Effect,
        /// The error.
        source: WorkerError,
    },
    /// A live comparison was void.
    #[error("a live comparison ({effect}) is void: {reason}; run it again, and report it if it comes again")]
    Void {
        /// The injected effect.
        effect: Effect,
        /// The reason.
        reason: String,
    },
}

impl CharacteristicsError {
    /// An error for a live comparison that could not be finished.
    pub fn in_live(failure: ExaminationFailure, effect: Effect) -> Self {
        match failure {
            ExaminationFailure::Judge(error) => error.into(),
            ExaminationFailure::Baseline(source) => Self::Worker {
                arm: "baseline",
                effect,
                source,
            },
            ExaminationFailure::Candidate(source) => Self::Worker {
                arm: "candidate",
                effect,
                source,
            },
            ExaminationFailure::Void(reason) | ExaminationFailure::Wrong(reason) => {
                Self::Void { effect, reason }
            }
        }
    }
}
