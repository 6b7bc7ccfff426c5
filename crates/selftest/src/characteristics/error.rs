//! What can stop the self-test.

use gauntlet_executor::WorkerError;
use gauntlet_lab::LabError;
use gauntlet_lab::gates::Trouble;
use gauntlet_problem::SuiteError;
use thiserror::Error;

use super::effect::Effect;

/// Nothing here is a finding about the verdicts: without all comparisons there are no shares.
#[derive(Debug, Error)]
pub enum CharacteristicsError {
    /// Criteria or blocks that cannot be analysed.
    #[error(transparent)]
    Stats(#[from] gauntlet_stats::Error),
    /// The lab's own trouble.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The suite of the live comparisons, which comes with the program.
    #[error("the self-test's own suite: {0}; report it, it is a fault of this program")]
    Suite(#[from] SuiteError),
    /// A worker of a live comparison failed.
    #[error(
        "the {arm}'s worker failed in a live comparison ({effect}): {source}; `gauntlet doctor` says what this machine \
         lacks, and `--live 0` leaves real workers out"
    )]
    Worker {
        /// Control or candidate.
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
    /// Trouble in a live comparison.
    pub fn in_live(trouble: Trouble, effect: Effect) -> Self {
        match trouble {
            Trouble::Lab(error) => error.into(),
            Trouble::Control(source) => Self::Worker {
                arm: "control",
                effect,
                source,
            },
            Trouble::Candidate(source) => Self::Worker {
                arm: "candidate",
                effect,
                source,
            },
            Trouble::Void(reason) | Trouble::Wrong(reason) => Self::Void { effect, reason },
        }
    }
}
