//! What a queue knows of a ticket.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::judgement::Judgement;
use crate::outcome::{JobResult, State};

/// One try at running a ticket.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// Who ran it: host and process.
    pub worker: String,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; none while it runs.
    pub ended: Option<Timestamp>,
    /// Why it is void; none if it found the ticket's result, or runs.
    pub reason: Option<String>,
}

/// The second comparison, on fresh inputs, of a candidate that the first one found to be faster by the target.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Confirmation {
    /// Its ticket.
    pub ticket: String,
    /// Where it stands.
    pub state: State,
    /// What it found.
    pub result: Option<JobResult>,
}

/// Where a ticket stands.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// The ticket.
    pub id: String,
    /// Whose it is.
    pub client: String,
    /// What is to be judged.
    pub judgement: Judgement,
    /// Where it stands.
    pub state: State,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it was queued.
    pub created: Timestamp,
    /// When its state became final.
    pub ended: Option<Timestamp>,
    /// The attempts so far.
    pub attempts: Vec<Attempt>,
    /// Tickets that were queued before and are not done.
    pub ahead: usize,
    /// How many comparisons of this task its client has asked for, up to this one. With many, the best looks better than it is.
    pub tries: usize,
    /// What was found.
    pub result: Option<JobResult>,
    /// The second comparison; none unless the first one found the candidate to be faster by the target.
    pub confirmation: Option<Confirmation>,
}

impl Status {
    /// Whether nothing more will be known of it: a candidate that was found faster waits for the second comparison.
    pub fn is_over(&self) -> bool {
        let is_confirmed = |second: &Confirmation| second.state.is_final();
        self.state.is_final() && self.confirmation.as_ref().is_none_or(is_confirmed)
    }

    /// Whether the candidate won: two comparisons, on inputs of their own, found it to be faster by the target.
    pub fn is_a_win(&self) -> bool {
        let second = self
            .confirmation
            .as_ref()
            .and_then(|second| second.result.as_ref());
        self.result.as_ref().is_some_and(JobResult::is_adopted) && second.is_some_and(JobResult::is_adopted)
    }
}
