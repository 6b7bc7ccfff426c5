//! What can stop the self-test.

use gauntlet_judge::{ExaminationFailure, JudgeError};
use gauntlet_task::SuiteError;
use gauntlet_worker::WorkerError;
use thiserror::Error;

use super::effect::Effect;

/// Nothing here is a finding about the verdicts: without all comparisons there are no shares.
#[derive(Debug, Error)]
pub enum CharacteristicsError {
    /// Criteria or blocks that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
    /// The judge itself failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The suite of the live comparisons, which comes with the program.
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
        /// What was injected.
        effect: Effect,
        /// What happened.
        source: WorkerError,
    },
    /// A live comparison was void.
    #[error("a live comparison ({effect}) is void: {reason}; run it again, and report it if it comes again")]
    Void {
        /// What was injected.
        effect: Effect,
        /// Why.
        reason: String,
    },
}

impl CharacteristicsError {
    /// A live comparison that could not be finished.
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
