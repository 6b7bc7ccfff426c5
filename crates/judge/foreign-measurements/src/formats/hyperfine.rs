//! hyperfine, `--export-json`: `{"results": [{"command", "times": [seconds, …]}]}` (version 1), or `{"schema_version": 2,
//! "results": [{"command", "name", "measurements": [{"time_wall_clock": {"value", "unit"}}]}]}` (version 2).
//!
//! Each run of a command is a process of its own. All runs of the first command come before those of the second. Runs that
//! failed are in the file too, with `--ignore-failure`: `exit_codes`, or `exit_code` of a measurement, tell them.

use std::path::Path;

use serde_json::Value;

use super::{number, numbers, refuse_failed, text, unit};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "hyperfine";

/// How to export so that each run is in the file.
const REMEDY: &str =
    "export with `hyperfine --export-json FILE COMMAND`; a summary without its runs is not enough";

/// The measurements; none if the file is not of this format.
pub fn read(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let results = value.get("results")?.as_array()?;
    let is_ours = |result: &Value| result.get("command").is_some_and(Value::is_string);
    (!results.is_empty() && results.iter().all(is_ours)).then(|| of_results(path, results))
}

fn of_results(path: &Path, results: &[Value]) -> Result<Measurements, SamplesError> {
    let mut benchmarks = Vec::new();
    let mut notes = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let field = format!("results[{index}]");
        let name = name(result);
        let codes = match (result.get("times"), result.get("measurements")) {
            (Some(_), _) => codes_of_list(&result["exit_codes"]),
            (None, Some(runs)) => codes_of_runs(runs),
            (None, None) => {
                let message = "the times of the single runs are missing";
                return Err(SamplesError::at(path, format!("{field}.times"), message, REMEDY));
            }
        };
        let times = match result.get("times") {
            Some(times) => numbers(path, &format!("{field}.times"), times)?,
            None => wall_clock(path, &field, &result["measurements"])?,
        };
        match codes {
            Some(codes) if codes.len() == times.len() => refuse_failed(path, &field, &name, &codes)?,
            Some(codes) => {
                let message = format!("{} exit codes for {} times", codes.len(), times.len());
                return Err(SamplesError::at(path, field, message, REMEDY));
            }
            None => notes.push(format!(
                "{} holds no exit codes of `{name}`: whether runs failed is not known",
                path.display()
            )),
        }
        benchmarks.push(Benchmark {
            name,
            processes: times.into_iter().map(|time| vec![time]).collect(),
        });
    }
    Measurements::new(path, PROGRAM, benchmarks, notes, REMEDY)
}

/// The command, with the parameters of a scan if it does not show them itself.
fn name(result: &Value) -> String {
    let command = result["command"].as_str().unwrap_or_default();
    let name = result["name"].as_str().unwrap_or(command);
    let parameters = result["parameters"].as_object().into_iter().flatten();
    let written = parameters.filter_map(|(parameter, value)| Some((parameter, value.as_str()?)));
    let hidden: Vec<String> = written
        .filter(|(_, value)| !name.contains(value))
        .map(|(parameter, value)| format!("{parameter}={value}"))
        .collect();
    match hidden.is_empty() {
        true => name.to_owned(),
        false => format!("{name} ({})", hidden.join(", ")),
    }
}

/// The exit codes of version 1; none in files of versions that did not write them.
fn codes_of_list(codes: &Value) -> Option<Vec<Option<i64>>> {
    Some(codes.as_array()?.iter().map(Value::as_i64).collect())
}

/// The exit codes of version 2; none if a run has no such field.
fn codes_of_runs(runs: &Value) -> Option<Vec<Option<i64>>> {
    let codes = runs
        .as_array()?
        .iter()
        .map(|run| Some(run.get("exit_code")?.as_i64()));
    codes.collect()
}

/// The elapsed time of each run, in seconds.
fn wall_clock(path: &Path, field: &str, runs: &Value) -> Result<Vec<f64>, SamplesError> {
    let mut times = Vec::new();
    for (index, run) in runs.as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.measurements[{index}].time_wall_clock");
        let measured = &run["time_wall_clock"];
        let value = number(
            path,
            &format!("{field}.value"),
            &measured["value"],
            "the elapsed time is missing",
        )?;
        let name = text(path, &format!("{field}.unit"), &measured["unit"])?;
        let seconds = unit(name).ok_or_else(|| {
            SamplesError::at(
                path,
                format!("{field}.unit"),
                format!("`{name}` is no known unit of time"),
                REMEDY,
            )
        })?;
        times.push(value * seconds);
    }
    Ok(times)
}
