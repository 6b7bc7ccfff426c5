//! A candidate: what is built and run.

use std::path::PathBuf;

use gauntlet_schedule::Schedule;
use serde::{Deserialize, Serialize};

/// A schedule on the round's executor, or someone else's program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The name it is known and recorded by: `baseline`, or a pitch's name.
    pub name: String,
    /// How it computes.
    pub schedule: Schedule,
    /// A program that speaks the worker protocol, in place of the round's executor.
    pub command: Option<Vec<PathBuf>>,
}

impl Candidate {
    /// Whether anything else is built or run than for `other`, whatever they are called.
    pub fn differs_from(&self, other: &Self) -> bool {
        self.schedule != other.schedule || self.command != other.command
    }
}
