//! What starts jobs, here or on other machines.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The scheduler could not be asked, or refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);

/// Tickets that are started together.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'b> {
    /// Their ids.
    pub tickets: &'b [String],
    /// Whether they need no card: they compile and compare results, and time nothing.
    pub is_of_checks: bool,
    /// Nodes that it shall not run on.
    pub avoided: &'b [String],
    /// Where the tickets' files are, as `ID.json`.
    pub ticket_folder: &'b Path,
    /// Where jobs publish.
    pub results: &'b Path,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// In the scheduler's words.
    pub said: String,
    /// The node that ran it, if it is known.
    pub node: Option<String>,
    /// Whether someone cancelled it, or interrupted what it ran: that says nothing of its ticket, nor of the node.
    pub was_told: bool,
}

/// A scheduler, or this machine.
pub trait Engine {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The name of a place where one of its jobs runs at a time, by its number.
    fn place(&self, number: usize) -> String {
        format!("{}-{number}", self.name())
    }

    /// How often its jobs are looked at.
    fn pause(&self) -> Duration {
        Duration::from_millis(500)
    }

    /// How long after a job has gone its result may still arrive: shared file systems show new files late.
    fn late(&self) -> Duration {
        Duration::from_secs(15)
    }

    /// Starts a job for each ticket, and returns their names, in the same order.
    ///
    /// # Errors
    /// If the scheduler takes none of them.
    fn start(&mut self, batch: &Batch<'_>) -> Result<Vec<String>, EngineError>;

    /// The jobs that wait or run, by the ticket of each. A scheduler may not know a job yet that it has just taken.
    ///
    /// # Errors
    /// If the scheduler does not answer.
    fn alive(&mut self) -> Result<BTreeMap<String, String>, EngineError>;

    /// How a job ended; none if it has forgotten it.
    fn ending(&mut self, job: &str) -> Option<Ending>;

    /// Ends a job.
    ///
    /// # Errors
    /// If the scheduler does not answer.
    fn cancel(&mut self, job: &str) -> Result<(), EngineError>;
}
