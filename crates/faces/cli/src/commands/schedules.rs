//! `gauntlet schedules`.

use gauntlet_parameters::{Parameter, Parameters, Table, Value};
use gauntlet_task::Suite;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{JsonFile, Schedules};
use crate::commands::devices;
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::sink;

/// Explains the parameters of a suite's kernels, or checks some against a device.
pub fn schedules(arguments: &Schedules) -> Result<Exit, CliError> {
    let suite = gauntlet_entrants::find_task(&arguments.suite)?;
    match &arguments.schedule {
        Some(text) => verify(text, &suite, arguments),
        None => explain(&suite.parameters(), &arguments.json),
    }
}

/// A parameter in its written form.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ParameterRow")]
pub struct Row {
    /// The name.
    parameter: String,
    /// The values that it takes, in words.
    accepts: String,
    /// The value of a kernel that does not name it.
    default: Value,
    /// What it does on a GPU.
    meaning: String,
    /// What it does on a CPU.
    on_cpu: String,
}

fn explain(table: &Table, json: &JsonFile) -> Result<Exit, CliError> {
    json.check()?;
    let row = |parameter: &Parameter| Row {
        parameter: parameter.name.to_string(),
        accepts: parameter.domain.to_string(),
        default: parameter.default.clone(),
        meaning: parameter.meaning.to_string(),
        on_cpu: parameter
            .on_cpu
            .as_ref()
            .unwrap_or(&parameter.meaning)
            .to_string(),
    };
    let rows: Vec<Row> = table.parameters().iter().map(row).collect();
    json.deliver_list(&rows, || {
        let cells = rows.iter().map(|row| {
            vec![
                row.parameter.clone(),
                row.accepts.clone(),
                row.default.to_string(),
                row.meaning.clone(),
                row.on_cpu.clone(),
            ]
        });
        listing::print(
            &["parameter", "accepts", "default", "on a GPU", "on a CPU"],
            cells,
        )
    })?;
    Ok(Exit::Done)
}

fn verify(text: &str, suite: &Suite, arguments: &Schedules) -> Result<Exit, CliError> {
    let schedule = gauntlet_entrants::read_parameters(text, &Parameters::new(), &suite.parameters())?;
    let device = devices::find(&arguments.device)?;
    let mut violations = Vec::new();
    for case in &suite.benchmark {
        for violation in case.sizes.violations(&schedule, &device) {
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
    }
    arguments.json.check()?;
    arguments.json.deliver_list(&violations, || {
        sink::print(suite.parameters().describe(&schedule))?;
        for violation in &violations {
            sink::print(format_args!("✗ {violation}\n  source: {}", violation.source))?;
        }
        if violations.is_empty() {
            sink::line(format_args!(
                "✓ {} accepts it on every benchmark case of {}",
                device.title, suite.name
            ))?;
        }
        Ok(())
    })?;
    Ok(if violations.is_empty() {
        Exit::Done
    } else {
        Exit::NotReached
    })
}
