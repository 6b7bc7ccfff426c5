//! The measured timeline of a kernel's roles, compared with the model's.

use std::path::Path;

use gauntlet_judge::traced;
use gauntlet_parameters::Parameters;
use gauntlet_report::{duration, timeline_roles};
use gauntlet_simulate::Timeline;
use gauntlet_task::Sizes;

use super::timelines::{TimelineFile, one};
use crate::arguments::{self, MeasuredExecutor};
use crate::commands::cuda::Place;
use crate::error::{CliError, terminal_width};
use crate::machine::Hold;
use crate::sink;

/// A call to be measured, and the place of the measurement.
pub struct Measured<'p> {
    file: Option<TimelineFile<'p>>,
    place: Place,
    name: &'p str,
    problem: &'p Sizes,
}

impl<'p> Measured<'p> {
    /// Refuses early a call that cannot be measured, or a result that cannot be written.
    pub fn of(
        file: Option<&'p Path>,
        device: &str,
        problems: &'p [(String, Sizes)],
    ) -> Result<Self, CliError> {
        let file = file.map(TimelineFile::of).transpose()?;
        let (name, problem) = one(problems)?;
        let place = Place::of(&arguments::Measured {
            executor: Some(MeasuredExecutor::Cuda),
            device: Some(device.to_owned()),
        })?;
        Ok(Self {
            file,
            place,
            name,
            problem,
        })
    }

    /// Measures, and reports the result next to the model's expectation.
    pub fn tell(
        &self,
        schedule: &Parameters,
        model: impl FnOnce(&Sizes) -> Result<Timeline, CliError>,
    ) -> Result<(), CliError> {
        let device = &self.place.device;
        let hold = Hold::take(MeasuredExecutor::Cuda)?;
        let measured: Timeline = traced(&self.place.workshop, self.problem, schedule, device)?;
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
