//! `gauntlet selftest`.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_selftest::characteristics::error::CharacteristicsError;
use gauntlet_selftest::characteristics::{Characteristics, Extent};
use jiff::Timestamp;
use serde::Serialize;

use crate::arguments::{MeasuredExecutor, Selftest};
use crate::commands::cheats::cheats;
use crate::commands::run::{cpu_worker, environment, version};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;

/// The JSON output: the figures, and the setting in which they were measured.
#[derive(Serialize)]
struct Document<'a> {
    version: String,
    date: Timestamp,
    environment: BTreeMap<String, String>,
    #[serde(flatten)]
    characteristics: &'a Characteristics,
}

/// Measures how often verdicts err when the truth is known.
pub fn selftest(arguments: &Selftest) -> Result<Exit, CliError> {
    if arguments.cheats {
        return cheats(arguments.json.as_deref());
    }
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    if arguments.comparisons == 0 {
        return Err(CliError::bad_input(
            "--comparisons 0 compares nothing",
            "give at least 1; 2000 is what the goals ask for",
        ));
    }
    let extent = Extent {
        synthetic: arguments.comparisons,
        live: arguments.live,
        seed: arguments.seed,
    };
    let date = Timestamp::now();
    let characteristics = {
        let _hold = (arguments.live > 0).then(|| Hold::take(MeasuredExecutor::Cpu));
        let line = Line(Progress::new());
        Characteristics::measure(extent, Device::host(), &cpu_worker(None)?, &line)?
    };
    let document = Document {
        version: version(),
        date,
        environment: environment(),
        characteristics: &characteristics,
    };
    sink::deliver(arguments.json.as_deref(), &document, || {
        sink::print(gauntlet_report::characteristics(
            &characteristics,
            terminal_width(),
        ))
    })?;
    Ok(if characteristics.is_as_promised() {
        Exit::Done
    } else {
        Exit::NotReached
    })
}

impl From<CharacteristicsError> for CliError {
    fn from(error: CharacteristicsError) -> Self {
        match error {
            CharacteristicsError::Judge(error) => error.into(),
            other => Self::broken(other.to_string()),
        }
    }
}
