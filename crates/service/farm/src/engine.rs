//! What starts jobs on other machines.

use std::collections::BTreeMap;
use std::path::Path;

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

/// A scheduler.
pub trait Engine {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Starts a job for each ticket, and returns their names, in the same order.
    ///
    /// # Errors
    /// If the scheduler takes none of them.
    fn start(&self, batch: &Batch<'_>) -> Result<Vec<String>, EngineError>;

    /// The jobs that wait or run, by the ticket of each. A scheduler may not know a job yet that it has just taken.
    ///
    /// # Errors
    /// If the scheduler does not answer.
    fn alive(&self) -> Result<BTreeMap<String, String>, EngineError>;

    /// How a job ended; none if it has forgotten it.
    fn ending(&self, job: &str) -> Option<Ending>;

    /// Ends a job.
    ///
    /// # Errors
    /// If the scheduler does not answer.
    fn cancel(&self, job: &str) -> Result<(), EngineError>;
}
