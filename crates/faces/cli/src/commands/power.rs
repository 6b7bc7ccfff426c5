//! `gauntlet selftest --power`.

use std::collections::BTreeMap;

use gauntlet_device::Device;
use gauntlet_selftest::cheats::Quiet;
use gauntlet_selftest::power::{Plan, Power};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{MeasuredExecutor, Selftest};
use crate::commands::run::{cpu_worker, environment, version};
use crate::commands::selftest::tested;
use crate::documents::{Document, Versioned};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::progress::{Line, Progress};
use crate::sink;

/// The result of `gauntlet selftest --power`.
#[derive(Serialize, JsonSchema)]
pub struct Powered {
    /// The version of the program.
    version: String,
    /// What the result depends on: processor, system, SIMD path.
    environment: BTreeMap<String, String>,
    /// How busy the machine was before.
    quiet: Quiet,
    /// Whether another program competed for the processors on purpose.
    contested: bool,
    /// How often real differences were found.
    power: Power,
}

impl Document for Powered {
    const NAME: &'static str = "power";
    const VERSION: u32 = 1;
}

/// Counts how often real differences are found within the budget, by the lab and by other rules.
pub fn power(arguments: &Selftest) -> Result<Exit, CliError> {
    let worker = cpu_worker(None)?;
    let plan = Plan {
        effects: arguments.effects.clone(),
        runs: arguments.runs,
        budget: arguments.budget.as_secs_f64(),
    };
    let (quiet, power) = tested(arguments, MeasuredExecutor::Cpu, || {
        let line = Line(Progress::new());
        Ok(Power::measure(plan, Device::host(), &worker, &line)?)
    })?;
    let result = Powered {
        version: version(),
        environment: environment(),
        quiet,
        contested: arguments.contested,
        power,
    };
    sink::deliver(arguments.json.as_deref(), &Versioned::of(&result), || {
        sink::print(gauntlet_report::power(&result.power, terminal_width()))
    })?;
    Ok(if result.power.adopted_the_same() {
        Exit::NotReached
    } else {
        Exit::Done
    })
}
