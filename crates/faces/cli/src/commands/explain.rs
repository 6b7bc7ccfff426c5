//! `gauntlet explain`.

pub mod counted;
mod measured;
pub mod schedule;
mod timelines;
pub mod times;

use gauntlet_parameters::Parameters;

use crate::arguments::Explain;
use crate::commands::devices;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows where the time goes.
pub fn explain(arguments: &Explain) -> Result<Exit, CliError> {
    arguments.json.check()?;
    if let Some(kernel) = &arguments.kernel {
        return counted::explain(kernel, arguments);
    }
    let schedule = gauntlet_entrants::read_parameters(
        &arguments.schedule,
        &Parameters::new(),
        &gauntlet_families::parameters(),
    )?;
    let device = devices::find(arguments.device())?;
    match &arguments.times {
        Some(file) => times::explain(file, &schedule, &device, &arguments.json),
        None => {
            let problem = arguments.problem.as_deref().unwrap_or_default();
            schedule::explain(problem, &schedule, &device, arguments)
        }
    }
}
