//! A candidate: what is built and run.

use std::path::PathBuf;

use gauntlet_device::Device;
use gauntlet_model::prove::recorded::RecordedLoop;
use gauntlet_problem::{Case, Problem};
use gauntlet_schedule::{DispatchEvidence, DispatchTable, Match, Schedule, ScheduleChange, accepts};
use serde::{Deserialize, Serialize};

use crate::pitch::Pitch;
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
    /// A schedule on the round's executor.
    pub fn new(name: impl Into<String>, schedule: Schedule) -> Self {
        Self {
            name: name.into(),
            schedule,
            command: None,
            dispatch: None,
            recorded_loop: None,
        }
    }

    /// The same built and run with other words of a schedule. A loop from the records is of the candidate that names it.
    pub(crate) fn changed(&self, name: impl Into<String>, change: &ScheduleChange) -> Self {
        Self {
            command: self.command.clone(),
            dispatch: self.dispatch.clone(),
            ..Self::new(name, change.apply(&self.schedule))
        }
    }

    /// What a pitch makes of it: words of a schedule change how its own program is built, unless the pitch has another.
    pub(crate) fn pitched(&self, pitch: &Pitch, round: &Round) -> Self {
        let changed = self.changed(&pitch.name, &pitch.schedule);
        Self {
            command: round.command(&pitch.command).or(changed.command),
            dispatch: round.dispatch(&pitch.dispatch).or(changed.dispatch),
            recorded_loop: pitch.recorded_loop,
            ..changed
        }
    }

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

#[cfg(test)]
mod tests {
    use gauntlet_problem::Suite;
    use gauntlet_stats::Criteria;

    use super::*;
    use crate::panel::fixture::pitch;
    use crate::round::Measurement;

    #[test]
    fn a_pitch_may_bring_a_program_and_a_fallback_keeps_that_of_its_control() {
        let suite = Suite::builtin("group-gemm").unwrap();
        let round = Round::ad_hoc(
            Device::host(),
            &suite,
            Measurement::default(),
            Criteria::default(),
        );
        let own = Some(vec![PathBuf::from("worker")]);
        let control = Candidate {
            command: own.clone(),
            recorded_loop: Some(RecordedLoop::ALL[0]),
            ..Candidate::new("baseline", Schedule::baseline())
        };
        let mut pitch = pitch("two stages");
        let pitched = control.pitched(&pitch, &round);
        assert_eq!(
            (pitched.name.as_str(), pitched.schedule.stages),
            ("two stages", 2)
        );
        assert_eq!((&pitched.command, pitched.recorded_loop), (&own, None));
        pitch.command = Some(vec![PathBuf::from("other")]);
        assert_eq!(control.pitched(&pitch, &round).command, pitch.command);
        let fallback = control.changed("fallback", pitch.fallback.schedule.as_ref().unwrap());
        assert_eq!((&fallback.command, fallback.recorded_loop), (&own, None));
        assert_eq!(fallback.schedule.stages, 1);
    }
}
