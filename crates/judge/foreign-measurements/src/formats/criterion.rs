//! Criterion.rs: `sample.json` (`{"sampling_mode", "iters": […], "times": [ns, …]}`), `raw.csv`, whose form is stable, and the
//! messages of `cargo criterion --message-format=json`, one JSON object a line.
//!
//! All samples of a benchmark run in one process. A sample is the total time of a number of iterations.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{beside, numbers, text, unit};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "criterion";

/// Where the samples are.
const REMEDY: &str = "name target/criterion/GROUP/FUNCTION/new/sample.json or raw.csv, or the output of `cargo criterion \
    --message-format=json`";

/// The unit of `sample.json`.
const NANOSECOND: f64 = 1e-9;

/// The measurements of a `sample.json`; none if the file is not of this format.
pub fn read_sample(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let (iterations, times) = (value.get("iters")?, value.get("times")?);
    Some(of_sample(path, iterations, times))
}

fn of_sample(path: &Path, iterations: &Value, times: &Value) -> Result<Measurements, SamplesError> {
    let iterations = numbers(path, "iters", iterations)?;
    let times = numbers(path, "times", times)?;
    let benchmark = Benchmark {
        name: name_of_sample(path),
        processes: vec![per_iteration(path, "times", &iterations, &times, NANOSECOND)?],
    };
    Measurements::new(path, PROGRAM, vec![benchmark], Vec::new(), REMEDY)
}

/// The name in the `benchmark.json` beside a `sample.json`; else the folders in which Criterion.rs puts it.
fn name_of_sample(path: &Path) -> String {
    let beside = std::fs::read_to_string(beside(path, "benchmark.json")).ok();
    let value: Option<Value> = beside.and_then(|text| serde_json::from_str(&text).ok());
    if let Some(name) = value.as_ref().and_then(|value| value["full_id"].as_str()) {
        return name.to_owned();
    }
    // …/FUNCTION/new/sample.json
    let function = path.parent().and_then(Path::parent).and_then(Path::file_name);
    function.map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The measurements of a stream of messages; none if the file is not of this format.
pub fn read_messages(path: &Path, text: &str) -> Option<Result<Measurements, SamplesError>> {
    let first: Value = serde_json::from_str(text.lines().find(|line| !line.trim().is_empty())?).ok()?;
    first.get("reason")?.as_str()?;
    Some(of_messages(path, text))
}

fn of_messages(path: &Path, messages: &str) -> Result<Measurements, SamplesError> {
    let mut benchmarks = Vec::new();
    for (index, line) in messages
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let number = index + 1;
        let message: Value = serde_json::from_str(line)
            .map_err(|error| SamplesError::at(path, number, format!("not JSON: {error}"), REMEDY))?;
        if message["reason"] != "benchmark-complete" {
            continue;
        }
        let field = |name: &str| format!("{number}: {name}");
        let unit_name = text(path, &field("unit"), &message["unit"])?;
        let seconds = unit(unit_name).ok_or_else(|| {
            let message = format!("`{unit_name}` is no unit of time, and only times can be compared");
            SamplesError::at(path, field("unit"), message, REMEDY)
        })?;
        let iterations = numbers(path, &field("iteration_count"), &message["iteration_count"])?;
        let values = numbers(path, &field("measured_values"), &message["measured_values"])?;
        benchmarks.push(Benchmark {
            name: text(path, &field("id"), &message["id"])?.to_owned(),
            processes: vec![per_iteration(
                path,
                &field("measured_values"),
                &iterations,
                &values,
                seconds,
            )?],
        });
    }
    Measurements::new(path, PROGRAM, benchmarks, Vec::new(), REMEDY)
}

/// A line of `raw.csv`.
#[derive(Deserialize)]
struct Row {
    group: String,
    function: Option<String>,
    value: Option<String>,
    sample_measured_value: f64,
    unit: String,
    iteration_count: f64,
}

/// The measurements of a `raw.csv`; none if the file is not of this format.
pub fn read_csv(path: &Path, text: &str) -> Option<Result<Measurements, SamplesError>> {
    let head = text.lines().next()?;
    let is_ours = ["group", "sample_measured_value", "iteration_count"]
        .iter()
        .all(|name| head.split(',').any(|column| column.trim() == *name));
    is_ours.then(|| of_csv(path, text))
}

fn of_csv(path: &Path, text: &str) -> Result<Measurements, SamplesError> {
    let mut benchmarks: Vec<Benchmark> = Vec::new();
    for (index, row) in csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .enumerate()
    {
        // The first line holds the names of the columns.
        let line = index + 2;
        let row: Row = row.map_err(|error| SamplesError::at(path, line, error.to_string(), REMEDY))?;
        let seconds = unit(&row.unit).ok_or_else(|| {
            SamplesError::at(path, line, format!("`{}` is no unit of time", row.unit), REMEDY)
        })?;
        let parts = [Some(row.group), row.function, row.value];
        let parts: Vec<String> = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let name = parts.join("/");
        let place = line.to_string();
        let time = per_iteration(
            path,
            &place,
            &[row.iteration_count],
            &[row.sample_measured_value],
            seconds,
        )?;
        match benchmarks.iter_mut().find(|one| one.name == name) {
            Some(known) => known.processes[0].extend(time),
            None => benchmarks.push(Benchmark {
                name,
                processes: vec![time],
            }),
        }
    }
    Measurements::new(path, PROGRAM, benchmarks, Vec::new(), REMEDY)
}

/// The mean seconds of an iteration of each sample.
fn per_iteration(
    path: &Path,
    place: &str,
    iterations: &[f64],
    totals: &[f64],
    seconds: f64,
) -> Result<Vec<f64>, SamplesError> {
    if iterations.len() != totals.len() {
        let message = format!(
            "{} numbers of iterations for {} times",
            iterations.len(),
            totals.len()
        );
        return Err(SamplesError::at(path, place, message, REMEDY));
    }
    Ok(iterations
        .iter()
        .zip(totals)
        .map(|(count, total)| total * seconds / count)
        .collect())
}
