//! Errors that end a tuning.

use std::time::Duration;

use gauntlet_judge::JudgeError;
use gauntlet_simulate::NoEstimate;
use thiserror::Error;

/// Why nothing can be tuned.
#[derive(Debug, Error)]
pub enum TuningError {
    /// The judge failed.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The model lacks a figure of the device, or has no kernel for the task.
    #[error(transparent)]
    NoEstimate(#[from] NoEstimate),
    /// The baseline of a case is invalid.
    #[error("no baseline for {case}: {rule}; give one that keeps the rule")]
    NoBaseline {
        /// The case.
        case: String,
        /// The rule that the baseline breaks.
        rule: String,
    },
    /// The baseline of a case does not run, so that nothing can be measured beside it.
    #[error("the baseline of {case} fails: {reason}; give one that works with --baseline")]
    BaselineFails {
        /// The case.
        case: String,
        /// Its failure.
        reason: String,
    },
    /// Tuning has too little time to decide anything.
    #[error(
        "a budget of {budget:.0?} is too short to decide anything: {why}; give about {needed:.0?}, or tune fewer cases"
    )]
    ShortBudget {
        /// The given budget.
        budget: Duration,
        /// The required budget.
        needed: Duration,
        /// The basis of that estimate.
        why: String,
    },
}
