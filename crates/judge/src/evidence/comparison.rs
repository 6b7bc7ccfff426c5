//! What a paired comparison came to: times by case, looks, and how both sides behaved while they were timed.

use gauntlet_stats::{Assessment, Block, Decision, Interval};
use serde::{Deserialize, Serialize};

use crate::evidence::{Spent, Suspicion};

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
    /// Median call of the baseline.
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

/// How the two sides behaved around their times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conduct {
    /// The candidate's speed-up by the coordinator's clock alone, which sees the messages too.
    pub by_coordinator: Option<Interval>,
    /// The candidate's speed-up by its and the baseline's reports over that by the coordinator's clock, as a log
    /// speed-up: 0 when both tell the same. What a slot has that calls do not grow with is taken out.
    pub own_clock: Option<Interval>,
    /// What the candidate's reports leave out of its exchanges beyond what the baseline's do, over all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaccounted: Option<Unaccounted>,
    /// The candidate's speed-up in later calls over that in the first call on operands not seen before, less what a lone
    /// call costs the baseline: by its reports or by the coordinator's clock, whichever makes more of it.
    pub memory: Option<Interval>,
    /// What the baseline's slots took beside calls, case by case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Around>,
    /// CPU time that the baseline used while nothing was asked of it, as a share of that used when something was; the
    /// median over pairs of the worst case. None where the system does not tell.
    #[serde(rename = "idle-control")]
    pub idle_baseline: Option<f64>,
    /// The same of the candidate.
    pub idle_candidate: Option<f64>,
    /// By how many of the baseline's calls the candidate's loading took more work than the baseline's and a quarter; the
    /// median over pairs of the worst case.
    pub loading: Option<f64>,
    /// The same of handing out the result.
    pub handing_out: Option<f64>,
    /// Why the times cannot be believed; none when they can.
    pub suspicion: Option<Suspicion>,
}

/// By which share of its reports the candidate leaves out more of its exchanges than the baseline does: the median over
/// slots timed side by side, with the bounds of the sign test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unaccounted {
    /// The median slot.
    pub median: f64,
    /// The median is over this, at the confidence asked for.
    pub lower: f64,
    /// The median is under this, at the confidence asked for.
    pub upper: f64,
    /// How many slots.
    pub slots: usize,
}

/// What a slot takes beside its calls, by the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Around {
    /// Seconds of messages and between calls.
    pub messages: f64,
    /// By how many seconds the first call is longer than the median one.
    pub begin: f64,
    /// The mean of the other calls over the median one.
    pub scatter: f64,
}
