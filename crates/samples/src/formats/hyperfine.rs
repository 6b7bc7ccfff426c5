//! hyperfine, `--export-json`: `{"results": [{"command", "times": [seconds, …]}]}` (version 1), or `{"schema_version": 2,
//! "results": [{"command", "name", "measurements": [{"time_wall_clock": {"value", "unit"}}]}]}` (version 2).
//!
//! Each run of a command is a process of its own. All runs of the first command come before those of the second.

use std::path::Path;

use serde_json::Value;

use super::{numbers, text, unit};
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
    for (index, result) in results.iter().enumerate() {
        let field = format!("results[{index}]");
        let name = result["name"]
            .as_str()
            .or(result["command"].as_str())
            .unwrap_or_default();
        let times = match (result.get("times"), result.get("measurements")) {
            (Some(times), _) => numbers(path, &format!("{field}.times"), times)?,
            (None, Some(runs)) => wall_clock(path, &field, runs)?,
            (None, None) => {
                let message = "the times of the single runs are missing";
                return Err(SamplesError::at(path, format!("{field}.times"), message, REMEDY));
            }
        };
        benchmarks.push(Benchmark {
            name: name.to_owned(),
            processes: times.into_iter().map(|time| vec![time]).collect(),
        });
    }
    Measurements::new(path, PROGRAM, benchmarks, REMEDY)
}

/// The elapsed time of each run, in seconds.
fn wall_clock(path: &Path, field: &str, runs: &Value) -> Result<Vec<f64>, SamplesError> {
    let mut times = Vec::new();
    for (index, run) in runs.as_array().into_iter().flatten().enumerate() {
        let field = format!("{field}.measurements[{index}].time_wall_clock");
        let measured = &run["time_wall_clock"];
        let value = measured["value"].as_f64().ok_or_else(|| {
            SamplesError::at(
                path,
                format!("{field}.value"),
                "the elapsed time is missing",
                REMEDY,
            )
        })?;
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
