//! `gauntlet selftest --power`.

use std::time::Duration;

use gauntlet_device::Device;
use gauntlet_selftest::cheats::Quiet;
use gauntlet_selftest::power::{Plan, Power};
use serde_json::json;

use crate::arguments::{MeasuredExecutor, Selftest};
use crate::commands::run::{cpu_worker, environment, this_program, version};
use crate::commands::selftest::neighbour;
use crate::error::{CliError, say, terminal_width};
use crate::exit::Exit;
use crate::machine::Hold;
use crate::progress::{Line, Progress};
use crate::sink;

/// How long the load of the machine is measured before.
const LISTEN: Duration = Duration::from_secs(2);

/// Counts how often real differences are found within the budget, by the lab and by other rules.
pub fn power(arguments: &Selftest) -> Result<Exit, CliError> {
    let worker = cpu_worker(None)?;
    let _hold = Hold::take(MeasuredExecutor::Cpu);
    let quiet = Quiet::measure(LISTEN);
    say(&format!("{quiet}\n"));
    let neighbour = neighbour(arguments, &this_program()?)?;
    let plan = Plan {
        effects: arguments.effects.clone(),
        runs: arguments.runs,
        budget: arguments.budget.as_secs_f64(),
    };
    let power = {
        let line = Line(Progress::new());
        Power::measure(plan, Device::host(), &worker, &line)?
    };
    drop(neighbour);
    let result = json!({
        "version": version(), "environment": environment(), "quiet": quiet, "contested": arguments.contested,
        "power": power,
    });
    sink::deliver(arguments.json.as_deref(), &result, || {
        sink::print(gauntlet_report::power(&power, terminal_width()))
    })?;
    Ok(if power.adopted_the_same() {
        Exit::NotReached
    } else {
        Exit::Done
    })
}
