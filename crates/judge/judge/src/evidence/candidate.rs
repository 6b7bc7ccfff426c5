//! A candidate: what is built and run.

use std::path::PathBuf;

use gauntlet_device::Device;
use gauntlet_parameters::Parameters;
use gauntlet_task::{Case, Sizes};
use gauntlet_task::{DispatchEvidence, DispatchTable, Match};
use serde::{Deserialize, Serialize};

use crate::evidence::Setting;

/// A schedule on the built-in executor, possibly one for each case, or an external program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The name by which it is reported and recorded, such as `baseline`.
    pub name: String,
    /// The schedule, where no table gives another.
    pub schedule: Parameters,
    /// A program that speaks the worker protocol, in place of the built-in executor.
    pub command: Option<Vec<PathBuf>>,
    /// Whether `command` is a host of this program, which calls a kernel that is no worker itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hosted: bool,
    /// Whether the kernel runs on a GPU only, as one in CUDA C++ does: then it has no code in the process that clocks it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub device_only: bool,
    /// The schedule of each problem; `schedule` is for problems that no entry comes near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<DispatchTable>,
    /// A digest of the source that `command` was built from, where a round changes a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Candidate {
    /// A schedule on the built-in executor.
    pub fn new(name: impl Into<String>, schedule: Parameters) -> Self {
        Self {
            name: name.into(),
            schedule,
            command: None,
            hosted: false,
            device_only: false,
            dispatch: None,
            source: None,
        }
    }

    /// A kernel that a host of Gauntlet's calls; `command` starts the host with the kernel.
    pub fn hosted(name: impl Into<String>, command: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            command: Some(command.into_iter().collect()),
            hosted: true,
            ..Self::new(name, Parameters::new())
        }
    }

    /// The same candidate with other parameters.
    pub fn changed(&self, name: impl Into<String>, change: &Parameters) -> Self {
        Self {
            command: self.command.clone(),
            hosted: self.hosted,
            device_only: self.device_only,
            dispatch: self.dispatch.clone(),
            source: self.source.clone(),
            ..Self::new(name, self.schedule.changed(change))
        }
    }

    /// Whether this program's own code loads operands, owns the loop, and hands out results.
    pub fn is_hosted(&self) -> bool {
        self.hosted || self.command.is_none()
    }

    /// Whether this candidate builds or runs anything different from `other`, regardless of their names.
    pub fn differs_from(&self, other: &Self) -> bool {
        self.schedule != other.schedule || self.command != other.command || self.dispatch != other.dispatch
    }

    /// The schedule for a problem: workers receive a schedule, never a table.
    pub fn schedule_for(&self, problem: &Sizes, device: &Device) -> &Parameters {
        self.found(problem, device)
            .map_or(&self.schedule, |found| found.schedule())
    }

    /// The same, and its origin in words.
    pub fn choice_for(&self, problem: &Sizes, device: &Device) -> (&Parameters, String) {
        match self.found(problem, device) {
            Some(found) => {
                let entry = found.entry();
                let near = match found {
                    Match::Exact(_) => "the same problem".to_owned(),
                    Match::Nearest { factor, .. } => {
                        format!("the nearest: sizes within a factor of {factor:.2}")
                    }
                };
                let predicted = match entry.evidence {
                    DispatchEvidence::Predicted => "; predicted, not measured",
                    DispatchEvidence::Measured | DispatchEvidence::Kept => "",
                };
                let elsewhere = self.dispatch.as_ref().filter(|table| table.device != device.name);
                let elsewhere = elsewhere.map_or_else(String::new, |table| {
                    format!("; made for {}, not {}", table.device, device.name)
                });
                (
                    &entry.schedule,
                    format!("{}, {near}{predicted}{elsewhere}", entry.case),
                )
            }
            None => {
                let why = match self.dispatch {
                    Some(_) => "no entry is near and allowed, so the baseline's",
                    None => "given",
                };
                (&self.schedule, why.to_owned())
            }
        }
    }

    fn found(&self, problem: &Sizes, device: &Device) -> Option<Match<'_>> {
        let table = self.dispatch.as_ref()?;
        table.find(problem, |schedule| problem.accepts(schedule, device))
    }

    /// The schedules in this candidate, each as a candidate of its own with the timed cases that it computes. Without a
    /// table there is one, with all cases.
    pub fn parts(&self, setting: &Setting) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for case in &setting.benchmark_cases {
            let schedule = self.schedule_for(&case.sizes, &setting.device);
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
pub struct Part {
    /// The candidate reduced to this schedule.
    pub candidate: Candidate,
    /// The cases that this schedule computes.
    pub timed: Vec<Case>,
}
