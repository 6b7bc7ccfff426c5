//! `gauntlet explain`.

mod times;

use gauntlet_schedule::Schedule;

use crate::arguments::Explain;
use crate::calibrations::Calibrations;
use crate::commands::devices;
use crate::exit::Exit;
use crate::schedule_text;
use crate::trouble::Trouble;

/// Says where the time goes.
pub fn explain(arguments: &Explain, calibrations: &Calibrations) -> Result<Exit, Trouble> {
    let schedule = schedule_text::read(&arguments.schedule, &Schedule::baseline())?;
    let device = calibrations.apply(devices::find(&arguments.device)?)?;
    match (&arguments.times, &arguments.problem) {
        (Some(file), _) => times::explain(file, &schedule, &device, arguments.json),
        (None, _) => Err(Trouble::bad_input(
            "a schedule cannot be explained yet",
            "give measured times with --times FILE",
        )),
    }
}
