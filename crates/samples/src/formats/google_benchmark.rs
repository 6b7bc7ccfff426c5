//! google-benchmark, `--benchmark_out=FILE --benchmark_out_format=json`: `{"context", "benchmarks": [{"run_name", "run_type",
//! "real_time", "time_unit"}]}`.
//!
//! All repetitions of a benchmark run in one process. A repetition's time is the mean of its iterations. Aggregates, such as
//! the mean over repetitions, are skipped.

use std::path::Path;

use serde_json::Value;

use super::{text, unit};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "google-benchmark";

/// How to export so that each repetition is in the file.
const REMEDY: &str = "export with `--benchmark_out=FILE --benchmark_out_format=json --benchmark_repetitions=20`, and without \
    `--benchmark_report_aggregates_only`";

/// The measurements; none if the file is not of this format.
pub fn read(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let benchmarks = value.get("benchmarks")?.as_array()?;
    let is_ours = |one: &Value| one.get("time_unit").is_some() || one.get("error_occurred").is_some();
    let matches = value.get("context").is_some() && benchmarks.iter().all(is_ours);
    matches.then(|| of_benchmarks(path, benchmarks))
}

fn of_benchmarks(path: &Path, benchmarks: &[Value]) -> Result<Measurements, SamplesError> {
    let mut found: Vec<Benchmark> = Vec::new();
    let mut notes = Vec::new();
    for (index, benchmark) in benchmarks.iter().enumerate() {
        let field = format!("benchmarks[{index}]");
        // Versions before 1.5 have neither a type nor a name of the run.
        let name = benchmark["run_name"]
            .as_str()
            .or(benchmark["name"].as_str())
            .unwrap_or_default();
        if benchmark["run_type"]
            .as_str()
            .is_some_and(|kind| kind != "iteration")
        {
            continue;
        }
        if benchmark["error_occurred"] == true {
            let why = benchmark["error_message"]
                .as_str()
                .unwrap_or("no reason is given");
            notes.push(format!(
                "`{name}` failed in {} and is left out: {why}",
                path.display()
            ));
            continue;
        }
        let time = benchmark["real_time"].as_f64().ok_or_else(|| {
            SamplesError::at(
                path,
                format!("{field}.real_time"),
                "the elapsed time is missing",
                REMEDY,
            )
        })?;
        let unit_name = text(path, &format!("{field}.time_unit"), &benchmark["time_unit"])?;
        let seconds = unit(unit_name).ok_or_else(|| {
            let message = format!("`{unit_name}` is no known unit of time");
            SamplesError::at(path, format!("{field}.time_unit"), message, REMEDY)
        })?;
        match found.iter_mut().find(|one| one.name == name) {
            Some(known) => known.processes[0].push(time * seconds),
            None => found.push(Benchmark {
                name: name.to_owned(),
                processes: vec![vec![time * seconds]],
            }),
        }
    }
    let mut measurements = Measurements::new(path, PROGRAM, found, REMEDY)?;
    measurements.notes = notes;
    Ok(measurements)
}
