//! `gauntlet selftest`.

use std::collections::BTreeMap;
use std::time::Duration;

use gauntlet_device::Device;
use gauntlet_selftest::burner::Burner;
use gauntlet_selftest::characteristics::error::CharacteristicsError;
use gauntlet_selftest::characteristics::{Characteristics, Extent};
use gauntlet_selftest::cheats::Quiet;
use gauntlet_worker::Program;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{MeasuredExecutor, Selftest};
use crate::commands::cheats::cheats;
use crate::commands::honest::honest;
use crate::commands::power::power;
use crate::commands::run::{cpu_worker, environment, this_program, version};
use crate::documents::{Document, Versioned};
use crate::error::{CliError, say_line, terminal_width};
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;

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
pub fn selftest(arguments: &Selftest) -> Result<Exit, CliError> {
    let named = [
        (
            arguments.cheats,
            cheats as fn(&Selftest) -> Result<Exit, CliError>,
        ),
        (arguments.honest, honest),
        (arguments.power, power),
    ];
    if let Some((_, command)) = named.into_iter().find(|(wanted, _)| *wanted) {
        return command(arguments);
    }
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

/// How long the load of the machine is measured before a test.
const LISTEN: Duration = Duration::from_secs(2);

/// Measures how quiet the machine is and says so, then runs a test: alone on the machine, or beside the neighbour if the
/// self-test is to be contested.
pub fn tested<T>(
    arguments: &Selftest,
    executor: MeasuredExecutor,
    test: impl FnOnce() -> Result<T, CliError>,
) -> Result<(Quiet, T), CliError> {
    let _hold = Hold::take(executor)?;
    let quiet = Quiet::measure(LISTEN);
    say_line(format_args!("{quiet}"));
    let _neighbour = neighbour(arguments, &this_program()?)?;
    Ok((quiet, test()?))
}

fn neighbour(arguments: &Selftest, program: &Program) -> Result<Option<Burner>, CliError> {
    let started = arguments.contested.then(|| Burner::start(program)).transpose();
    started.map_err(|error| {
        CliError::broken(format!(
            "the neighbour cannot be started: {error}; leave out --contested"
        ))
    })
}

/// Refuses names that `known` does not hold.
pub fn check_names(wanted: &[String], known: &[&str]) -> Result<(), CliError> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(stranger) => Err(CliError::bad_input(
            format!("--only: there is no candidate `{stranger}`"),
            format!("one of {}", known.join(", ")),
        )),
    }
}

impl From<CharacteristicsError> for CliError {
    fn from(error: CharacteristicsError) -> Self {
        match error {
            CharacteristicsError::Judge(error) => error.into(),
            other => Self::broken(other.to_string()),
        }
    }
}
