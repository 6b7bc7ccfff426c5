//! `--power`.

use std::collections::BTreeMap;

use gauntlet_cli::documents::{Document, Versioned};
use gauntlet_cli::error::{CliError, terminal_width};
use gauntlet_cli::exit::Exit;
use gauntlet_cli::progress::{Line, Progress};
use gauntlet_cli::{MeasuredExecutor, cpu_worker, environment, sink, version};
use gauntlet_device::Device;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Arguments, tested};
use crate::characteristics::effect::Effect;
use crate::cheats::Quiet;
use crate::power::{Plan, Power};
use crate::tables;

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
pub fn power(all: &Arguments) -> Result<Exit, CliError> {
    let arguments = &all.selftest;
    let worker = cpu_worker(None)?;
    let plan = Plan {
        effects: arguments.effects.iter().copied().map(Effect::of).collect(),
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
        sink::print(tables::power(&result.power, terminal_width()))
    })?;
    Ok(if result.power.adopted_the_same() {
        Exit::NotReached
    } else {
        Exit::Done
    })
}
