//! What a kernel's roles do when, measured, beside what the model expects of them.

use std::path::Path;

use gauntlet_judge::traced;
use gauntlet_parameters::Parameters;
use gauntlet_report::{duration, timeline_roles};
use gauntlet_simulate::Timeline;
use gauntlet_task::Sizes;

use super::timelines::{TimelineFile, one};
use crate::arguments::{self, MeasuredExecutor};
use crate::commands::cuda::Place;
use crate::machine::Hold;
use crate::sink;
use crate::trouble::{Trouble, terminal_width};

/// A call that is to be measured, and where.
pub struct Measured<'p> {
    file: Option<TimelineFile<'p>>,
    place: Place,
    name: &'p str,
    problem: &'p Sizes,
}

impl<'p> Measured<'p> {
    /// Refuses what could not be measured or written in the end.
    pub fn of(
        file: Option<&'p Path>,
        device: &str,
        problems: &'p [(String, Sizes)],
    ) -> Result<Self, Trouble> {
        let file = file.map(TimelineFile::of).transpose()?;
        let (name, problem) = one(problems)?;
        let place = Place::of(&arguments::Measured {
            executor: MeasuredExecutor::Cuda,
            device: Some(device.to_owned()),
        })?;
        Ok(Self {
            file,
            place,
            name,
            problem,
        })
    }

    /// Measures, and tells it beside what the model expects.
    pub fn tell(
        &self,
        schedule: &Parameters,
        model: impl FnOnce(&Sizes) -> Result<Timeline, Trouble>,
    ) -> Result<(), Trouble> {
        let device = &self.place.device;
        let hold = Hold::take(MeasuredExecutor::Cuda);
        let measured = traced(&self.place.workshop, self.problem, schedule, device)?;
        drop(hold);
        let expected = model(self.problem)?;
        let time = duration(measured.seconds);
        for (heading, timeline) in [
            (
                format!("Measured, {time} from the first block's begin to the last one's end:"),
                &measured,
            ),
            (
                format!("Expected, {} from the call's begin:", duration(expected.seconds)),
                &expected,
            ),
        ] {
            sink::print(format_args!(
                "{heading}\n{}",
                timeline_roles(timeline, terminal_width())
            ))?;
        }
        match &self.file {
            Some(file) => {
                let title = format!("{} on {}, measured: {time}", self.name, device.title);
                file.write(&measured, &title, self.problem, schedule)
            }
            None => Ok(()),
        }
    }
}
