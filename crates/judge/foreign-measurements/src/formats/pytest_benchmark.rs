//! pytest-benchmark, `--benchmark-json`: `{"machine_info", "benchmarks": [{"fullname", "stats": {"data": [seconds, …]}}]}`.
//!
//! All rounds of a benchmark run in one process. A round's time is the mean of its iterations.

use std::path::Path;

use serde_json::Value;

use super::{numbers, text};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "pytest-benchmark";

/// How to export so that each round is in the file.
const REMEDY: &str =
    "export with `pytest --benchmark-json=FILE`, or `--benchmark-save=NAME --benchmark-save-data`";

/// The measurements; none if the file is not of this format.
pub fn read(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let benchmarks = value.get("benchmarks")?.as_array()?;
    let is_ours =
        |one: &Value| one.get("stats").is_some_and(Value::is_object) && one.get("fullname").is_some();
    let is_empty_of_ours = benchmarks.is_empty() && value.get("machine_info").is_some();
    let matches = is_empty_of_ours || (!benchmarks.is_empty() && benchmarks.iter().all(is_ours));
    matches.then(|| of_benchmarks(path, benchmarks))
}

fn of_benchmarks(path: &Path, benchmarks: &[Value]) -> Result<Measurements, SamplesError> {
    let mut found = Vec::new();
    for (index, benchmark) in benchmarks.iter().enumerate() {
        let field = format!("benchmarks[{index}]");
        let name = text(path, &format!("{field}.fullname"), &benchmark["fullname"])?;
        let data = benchmark["stats"].get("data").ok_or_else(|| {
            let message = "the times of the single rounds are missing";
            SamplesError::at(path, format!("{field}.stats.data"), message, REMEDY)
        })?;
        found.push(Benchmark {
            name: name.to_owned(),
            processes: vec![numbers(path, &format!("{field}.stats.data"), data)?],
        });
    }
    Measurements::new(path, PROGRAM, found, Vec::new(), REMEDY)
}
