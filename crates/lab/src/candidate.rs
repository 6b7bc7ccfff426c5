//! A candidate: what is built and run.

use std::path::PathBuf;

use gauntlet_device::Device;
use gauntlet_problem::Problem;
use gauntlet_schedule::{DispatchTable, Schedule, accepts};
use serde::{Deserialize, Serialize};

/// A schedule on the round's executor, one schedule for each problem, or someone else's program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The name it is known and recorded by: `baseline`, or a pitch's name.
    pub name: String,
    /// How it computes, where no table says otherwise.
    pub schedule: Schedule,
    /// A program that speaks the worker protocol, in place of the round's executor.
    pub command: Option<Vec<PathBuf>>,
    /// The schedule of each problem; `schedule` is that of problems to which no entry comes near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchTable>,
}

impl Candidate {
    /// Whether anything else is built or run than for `other`, whatever they are called.
    pub fn differs_from(&self, other: &Self) -> bool {
        self.schedule != other.schedule || self.command != other.command || self.dispatch != other.dispatch
    }

    /// How it computes a problem: workers are told a schedule, never a table.
    pub fn schedule_for(&self, problem: &Problem, device: &Device) -> &Schedule {
        let Some(table) = &self.dispatch else {
            return &self.schedule;
        };
        match table.find(problem, |schedule| accepts(schedule, problem, device)) {
            Some(found) => found.schedule(),
            None => &self.schedule,
        }
    }
}
