//! Is the candidate faster? Pairs of fresh worker processes, alternating blocks, planned looks; and whether both sides
//! play fair while they are timed.

mod conduct;
mod contender;
mod contest;
mod pair;
mod recorded;
mod spent;
mod suspicion;

use std::time::Duration;

use gauntlet_stats::{Assessment, Block, Decision, Interval};
use serde::{Deserialize, Serialize};

use crate::candidate::Candidate;
use crate::gates::Trouble;
use crate::observer::Observer;
use crate::round::Round;
use crate::workshop::Workshop;

pub use conduct::{Around, Conduct, Unaccounted};
pub use contest::{Contest, copies, last_level_cache};
pub use recorded::compare_recorded;
pub use spent::Spent;
pub use suspicion::Suspicion;

/// What was measured, or read from a record, and what it comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// What the criteria make of it.
    pub assessment: Assessment,
    /// Each problem's times.
    pub cases: Vec<CaseTimes>,
    /// Each look at the figures, in order; empty for records.
    pub looks: Vec<Look>,
    /// The seed of the orders of blocks and of the bootstrap. Operands of case c of n, counted from 0, are made from the
    /// c-th number after it for warming up, and in pair p from the (n + 8(p·n + c))-th and those after that.
    pub seed: u64,
    /// Whether the times can be believed; none for records.
    #[serde(default)]
    pub conduct: Option<Conduct>,
    /// What the recorded bounds rest on; none for measurements.
    pub declared: Option<String>,
    /// What predicted times rest on; none for times that somebody took.
    #[serde(default)]
    pub predicted: Option<String>,
    /// What is missing of the plan, if anything: pairs for which there was no time, cases without recorded times.
    pub ended_early: Option<String>,
    /// Where the time of the pairs went; none where nothing was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// The times of one problem, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CaseTimes {
    /// The case.
    pub case: String,
    /// Median call of the control.
    pub baseline: f64,
    /// Median call of the candidate.
    pub candidate: f64,
    /// All blocks; empty for records.
    pub blocks: Vec<Block>,
}

/// What was known at a look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Look {
    /// Pairs of processes measured by then.
    pub processes: usize,
    /// The suite's interval, at the confidence planned for this look.
    pub interval: Option<Interval>,
    /// What it said.
    pub decision: Decision,
}

/// Measures a candidate against its control until a planned look decides, the plan ends, or the time allowed is over.
pub fn measure(
    workshop: &Workshop,
    round: &Round,
    control: &Candidate,
    candidate: &Candidate,
    allowed: Duration,
    observer: &dyn Observer,
) -> Result<Comparison, Trouble> {
    let mut contest = Contest::new(
        workshop,
        round,
        control.clone(),
        candidate.clone(),
        rand::random(),
    )?;
    while !contest.is_over() {
        let left = allowed.saturating_sub(contest.spent());
        if !contest.advance(left, observer)? {
            break;
        }
    }
    contest.finish()
}
