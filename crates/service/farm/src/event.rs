//! What a farm tells.

use std::fmt;

use jiff::Timestamp;

/// What happened to a ticket, or to the farm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A job was started for it, or one that had been started before was found.
    Started {
        /// The ticket.
        ticket: String,
        /// The scheduler's name of the job.
        job: String,
    },
    /// Its result was recorded.
    Ended {
        /// The ticket.
        ticket: String,
        /// What it came to, such as `decided: adopt`.
        outcome: String,
    },
    /// An attempt came to nothing.
    Void {
        /// The ticket.
        ticket: String,
        /// Why.
        reason: String,
    },
    /// Jobs of several tickets died on a node, which is given none for a while.
    Shunned {
        /// The node.
        node: String,
        /// How many tickets.
        tickets: usize,
    },
    /// Attempts died at a place one after another, which is given no ticket for a while.
    Resting {
        /// The place.
        place: String,
        /// How many died in a row.
        deaths: u32,
        /// Why the last one did.
        reason: String,
        /// When it is given a ticket again.
        until: Timestamp,
    },
    /// The scheduler does not answer; what runs is waited for.
    Silent(String),
    /// The scheduler takes no jobs, and says why. It is asked again after a while.
    Refused(String),
}

impl fmt::Display for Event {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { ticket, job } => write!(to, "{ticket}: job {job}"),
            Self::Ended { ticket, outcome } => write!(to, "{ticket}: {outcome}"),
            Self::Void { ticket, reason } => write!(to, "{ticket}: this attempt is void: {reason}"),
            Self::Shunned { node, tickets } => write!(
                to,
                "jobs of {tickets} tickets died on {node}, which is given none for ten minutes"
            ),
            Self::Resting {
                place,
                deaths,
                reason,
                until,
            } => write!(
                to,
                "the last {deaths} attempts died at {place}, which takes no ticket before {}: {reason}",
                until.strftime("%H:%M:%S UTC")
            ),
            Self::Refused(why) => write!(to, "{why}; it is asked again in a while"),
            Self::Silent(why) => write!(to, "{why}; what was started goes on"),
        }
    }
}
