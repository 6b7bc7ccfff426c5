//! Timelines in files, both the model's and measured ones.

use std::path::Path;

use gauntlet_parameters::Parameters;
use gauntlet_report::{timeline_picture, trace};
use gauntlet_simulate::Timeline;
use gauntlet_task::Sizes;

use crate::error::CliError;
use crate::sink;

/// A file for a timeline; its ending selects the format.
pub enum TimelineFile<'p> {
    Trace(&'p Path),
    Picture(&'p Path),
}

impl<'p> TimelineFile<'p> {
    pub fn of(path: &'p Path) -> Result<Self, CliError> {
        sink::check(path)?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Ok(Self::Trace(path)),
            Some("svg") => Ok(Self::Picture(path)),
            _ => Err(CliError::bad_input(
                format!("{} is no file for a timeline", path.display()),
                "end its name in .json for a trace that Perfetto and Chrome open, or in .svg for a picture",
            )),
        }
    }

    pub fn write(
        &self,
        timeline: &Timeline,
        title: &str,
        problem: &Sizes,
        schedule: &Parameters,
    ) -> Result<(), CliError> {
        let schedule = problem.task().parameters().describe(schedule);
        match self {
            Self::Trace(path) => {
                let text = serde_json::to_vec(&trace(timeline, &format!("{title}; {schedule}")))
                    .map_err(|error| CliError::broken(error.to_string()))?;
                sink::write(path, &text)
            }
            Self::Picture(path) => {
                let picture = timeline_picture(timeline, title, &format!("{problem} · {schedule}"));
                sink::write(path, picture.as_bytes())
            }
        }
    }
}

/// The single problem that a timeline shows, with its name.
pub fn one(problems: &[(String, Sizes)]) -> Result<&(String, Sizes), CliError> {
    match problems {
        [one] => Ok(one),
        several => Err(CliError::bad_input(
            "a timeline shows one problem, and a suite was given",
            format!(
                "name a case, such as {}",
                several.first().map_or("group-gemm/case-1", |(name, _)| name)
            ),
        )),
    }
}
