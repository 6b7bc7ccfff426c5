//! A candidate: what is built and run.

use std::path::PathBuf;

use gauntlet_device::Device;
use gauntlet_model::prove::recorded::RecordedLoop;
use gauntlet_problem::{Case, Problem};
use gauntlet_schedule::{DispatchTable, Match, Schedule, accepts};
use serde::{Deserialize, Serialize};

use crate::round::Round;

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
    /// The loop that is proved in place of the one that its schedule stands for; nothing is built of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_loop: Option<RecordedLoop>,
}

impl Candidate {
    /// Whether anything else is built or run than for `other`, whatever they are called.
    pub fn differs_from(&self, other: &Self) -> bool {
        self.schedule != other.schedule
            || self.command != other.command
            || self.dispatch != other.dispatch
            || self.recorded_loop != other.recorded_loop
    }

    /// How it computes a problem: workers are told a schedule, never a table.
    pub fn schedule_for(&self, problem: &Problem, device: &Device) -> &Schedule {
        self.found(problem, device)
            .map_or(&self.schedule, |found| found.schedule())
    }

    /// The same, and where it is from, in words.
    pub fn choice_for(&self, problem: &Problem, device: &Device) -> (&Schedule, String) {
        match self.found(problem, device) {
            Some(Match::Exact(entry)) => (&entry.schedule, format!("{}, the same problem", entry.case)),
            Some(Match::Nearest { entry, factor }) => (
                &entry.schedule,
                format!(
                    "{}, the nearest: sizes within a factor of {factor:.2}",
                    entry.case
                ),
            ),
            None => {
                let why = match self.dispatch {
                    Some(_) => "no entry is near and allowed, so the baseline's",
                    None => "given",
                };
                (&self.schedule, why.to_owned())
            }
        }
    }

    fn found(&self, problem: &Problem, device: &Device) -> Option<Match<'_>> {
        let table = self.dispatch.as_ref()?;
        table.find(problem, |schedule| accepts(schedule, problem, device))
    }

    /// The schedules that it is made of, each as a candidate of its own with the timed cases that it computes: all of
    /// them where there is no table.
    pub(crate) fn parts(&self, round: &Round) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for case in &round.benchmark_cases {
            let schedule = self.schedule_for(&case.problem, &round.device);
            match parts.iter_mut().find(|part| part.candidate.schedule == *schedule) {
                Some(part) => part.timed.push(case.clone()),
                None => parts.push(Part {
                    candidate: Self {
                        schedule: schedule.clone(),
                        dispatch: None,
                        ..self.clone()
                    },
                    timed: vec![case.clone()],
                }),
            }
        }
        parts
    }
}

/// One schedule of a candidate, with the timed cases that it computes.
pub(crate) struct Part {
    /// The candidate as if this were its only schedule.
    pub(crate) candidate: Candidate,
    /// The cases.
    pub(crate) timed: Vec<Case>,
}
