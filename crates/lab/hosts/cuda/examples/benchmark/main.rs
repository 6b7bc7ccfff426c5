//! Times NVFP4 GEMMs on a GPU: named cases under named schedules.
//!
//! `cargo run --release -p gauntlet-host-cuda --example benchmark -- [--case NAME]… [--schedule NAME]… [--json FILE]`
//!
//! Progress goes to standard error, a table to standard output. With `--server` it reads one request per line from
//! standard input, `{"case": "group-gemm/case-1", "schedule": "automatic"}`, and answers each with a row or an `error`,
//! so that a program in another language can alternate with it.

mod cases;
#[path = "../support/machine.rs"]
mod machine;
mod measure;
mod schedules;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use gauntlet_kernels_cuda::Engine;
use gauntlet_task::InputKind;
use serde_json::{Value, json};

use cases::Case;
use measure::{Bench, Row};

/// Times NVFP4 GEMMs on a GPU.
#[derive(Parser)]
struct Arguments {
    /// A case or a family of cases, such as group-gemm/case-1 or decode; may be repeated; all cases if not given
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// A step of the staircase, `automatic`, `repacked`, or a schedule as TOML, given inline or as a file; may be
    /// repeated; all steps if not given
    #[arg(long, value_name = "NAME")]
    schedule: Vec<String>,
    /// Kind of operands; wide ones contain every code
    #[arg(long, value_enum, default_value = "wide")]
    inputs: Kind,
    /// Where to write the measurements
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    json: Option<PathBuf>,
    /// Answer requests from standard input
    #[arg(long, conflicts_with_all = ["case", "schedule"])]
    server: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Competition,
    Wide,
    Outliers,
    Adversarial,
}

impl From<Kind> for InputKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Competition => Self::Competition,
            Kind::Wide => Self::Wide,
            Kind::Outliers => Self::Outliers,
            Kind::Adversarial => Self::Adversarial,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // Reject a wrong name before looking for a GPU.
    let cases = cases::named(&arguments.case)?;
    let engine = machine::engine()?;
    let mut bench = Bench::new(engine, arguments.inputs.into());
    if arguments.server {
        return server::serve(&mut bench);
    }
    let before = reading(bench.engine());
    let mut rows = Vec::new();
    // A kernel that fails makes the device unusable, but earlier measurements are still written.
    let ended = cases
        .iter()
        .try_for_each(|case| add_rows(&mut bench, case, &arguments.schedule, &mut rows));
    print!("{}", table(&rows));
    if let Some(path) = &arguments.json {
        let value = json!({
            "machine": machine::describe(bench.engine()),
            "inputs": InputKind::from(arguments.inputs).to_string(),
            "before": before,
            "after": reading(bench.engine()),
            "aborted": ended.as_ref().err().map(ToString::to_string),
            "rows": rows,
        });
        std::fs::write(path, format!("{value:#}\n"))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    ended
}

fn add_rows(
    bench: &mut Bench,
    case: &Case,
    wanted: &[String],
    rows: &mut Vec<Row>,
) -> Result<(), Box<dyn Error>> {
    let target = bench.engine().device().target()?;
    let steps = match wanted {
        [] => schedules::all(&case.problem, target)?,
        wanted => wanted
            .iter()
            .map(|name| schedules::named(name, &case.problem, target))
            .collect::<Result<_, _>>()?,
    };
    for step in &steps {
        eprintln!("{}, {}", case.name, step.name);
        rows.push(bench.row(case, step)?);
    }
    bench.forget(case);
    Ok(())
}

/// Clock, power, temperature and the reasons for a reduced clock; null without NVML.
fn reading(engine: &Engine) -> Value {
    match engine.monitor().and_then(|monitor| monitor.read().ok()) {
        Some(reading) => json!({
            "clock_mhz": reading.clock,
            "highest_clock_mhz": reading.highest_clock,
            "power_w": reading.power,
            "temperature_c": reading.temperature,
            "throttling": reading.throttling,
        }),
        None => Value::Null,
    }
}

/// A table in microseconds, one line per row.
fn table(rows: &[Row]) -> String {
    let mut lines = vec![format!(
        "{:24} {:20} {:>9} {:>9} {:>9} {:>9} {:>9}  {}",
        "case", "schedule", "graph µs", "kernel", "call", "host", "host p99", "words"
    )];
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    lines.extend(rows.iter().map(|row| {
        format!(
            "{:24} {:20} {:>9} {:>9} {:>9} {:>9} {:>9}  {}",
            row.case,
            row.schedule,
            number(row.graph_us),
            number(row.kernel_us),
            number(row.call_us),
            number(row.host_us),
            number(row.host_p99_us),
            row.refused
                .as_ref()
                .map_or_else(|| row.words.to_string(), |why| format!("refused: {why}")),
        )
    }));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_hold_together() {
        Arguments::command().debug_assert();
        assert!(Arguments::try_parse_from(["benchmark", "--server", "--case", "decode"]).is_err());
    }
}
