//! Error rates of verdicts on known truths.

use std::collections::BTreeMap;

use gauntlet_cli::documents::{Document, Versioned};
use gauntlet_cli::error::{CliError, terminal_width};
use gauntlet_cli::exit::Exit;
use gauntlet_cli::machine::Hold;
use gauntlet_cli::progress::{Line, Progress};
use gauntlet_cli::{MeasuredExecutor, cpu_worker, environment, sink, version};
use gauntlet_device::Device;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::Arguments;
use crate::characteristics::error::CharacteristicsError;
use crate::characteristics::{Characteristics, Extent};
use crate::tables;

/// The result of `gauntlet selftest`: the figures, and the setting in which they were measured.
#[derive(Serialize, JsonSchema)]
pub struct Tested<'a> {
    /// The version of the program.
    version: String,
    /// When the test began.
    date: Timestamp,
    /// What the figures depend on: processor, system, SIMD path.
    environment: BTreeMap<String, String>,
    /// How often verdicts err.
    #[serde(flatten)]
    characteristics: &'a Characteristics,
}

impl Document for Tested<'_> {
    const NAME: &'static str = "operating-characteristics";
    const VERSION: u32 = 1;
}

/// Measures how often verdicts err when the truth is known.
pub fn characteristics(all: &Arguments) -> Result<Exit, CliError> {
    let arguments = &all.selftest;
    if arguments.contested || !arguments.only.is_empty() {
        return Err(CliError::bad_input(
            "--contested and --only say nothing without --cheats, --honest or --power",
            "name one of them, or leave the option out",
        ));
    }
    arguments.json.iter().try_for_each(|path| sink::check(path))?;
    let extent = Extent {
        synthetic: arguments.comparisons,
        live: arguments.live,
        seed: arguments.seed,
    };
    let date = Timestamp::now();
    let characteristics = {
        let _hold = (arguments.live > 0)
            .then(|| Hold::take(MeasuredExecutor::Cpu))
            .transpose()?;
        let line = Line(Progress::new());
        Characteristics::measure(extent, Device::host(), &cpu_worker(None)?, &line)?
    };
    let document = Tested {
        version: version(),
        date,
        environment: environment(),
        characteristics: &characteristics,
    };
    sink::deliver(arguments.json.as_deref(), &Versioned::of(&document), || {
        sink::print(tables::characteristics(&characteristics, terminal_width()))
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
