//! google-benchmark, `--benchmark_out=FILE --benchmark_out_format=json`: `{"context", "benchmarks": [{"run_name", "run_type",
//! "real_time", "time_unit"}]}`.
//!
//! All repetitions of a benchmark run in one process. A repetition's time is the mean of its iterations. Aggregates, such as
//! the mean over repetitions, are skipped; so are fits of a complexity (`BigO`, `RMS`), with a note.

use std::path::Path;

use serde_json::Value;

use super::{number, text, unit};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "google-benchmark";

/// How to export so that each repetition is in the file.
const REMEDY: &str = "export with `--benchmark_out=FILE --benchmark_out_format=json --benchmark_repetitions=20`, and without \
    `--benchmark_report_aggregates_only`";

/// The measurements; none if the file is not of this format.
pub fn read(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let benchmarks = value.get("benchmarks")?.as_array()?;
    let has = |one: &Value, name: &str| one.get(name).is_some();
    let is_ours = |one: &Value| {
        ["time_unit", "run_type", "error_occurred", "skipped", "rms"]
            .iter()
            .any(|name| has(one, name))
    };
    let matches = value.get("context").is_some() && benchmarks.iter().all(is_ours);
    matches.then(|| of_benchmarks(path, benchmarks))
}

/// What an entry of the file is.
enum Entry {
    /// The time of a repetition.
    Time,
    /// A figure over all repetitions.
    Aggregate,
    /// A coefficient or the error of a fitted complexity.
    Fit,
    /// A repetition that ended by an error, with its reason.
    Failed(String),
    /// A benchmark that did not run, with its reason.
    Skipped(String),
}

impl Entry {
    fn of(benchmark: &Value) -> Self {
        let why = |name: &str| {
            benchmark[name]
                .as_str()
                .unwrap_or("no reason is given")
                .to_owned()
        };
        let aggregate = benchmark["aggregate_name"].as_str().unwrap_or_default();
        let is_fit = matches!(aggregate, "BigO" | "RMS")
            || ["big_o", "rms"].iter().any(|name| {
                // A counter of the user's may have the same name.
                benchmark.get(name).is_some() && benchmark.get("real_time").is_none()
            });
        if is_fit {
            Self::Fit
        } else if benchmark["error_occurred"] == true {
            Self::Failed(why("error_message"))
        } else if benchmark["skipped"] == true {
            Self::Skipped(why("skip_message"))
        } else if benchmark["run_type"]
            .as_str()
            .is_some_and(|kind| kind != "iteration")
        {
            Self::Aggregate
        } else {
            Self::Time
        }
    }
}

/// The repetitions of one benchmark.
#[derive(Default)]
struct Repetitions {
    name: String,
    times: Vec<f64>,
    /// The reasons of those that failed.
    failures: Vec<String>,
}

fn of_benchmarks(path: &Path, benchmarks: &[Value]) -> Result<Measurements, SamplesError> {
    let mut all: Vec<Repetitions> = Vec::new();
    let mut notes = Vec::new();
    for (index, benchmark) in benchmarks.iter().enumerate() {
        // Versions before 1.5 have neither a type nor a name of the run.
        let own = benchmark["name"].as_str().unwrap_or_default();
        let name = benchmark["run_name"].as_str().unwrap_or(own);
        let mut add = |change: &mut dyn FnMut(&mut Repetitions)| {
            let place = all.iter().position(|one| one.name == name);
            let place = place.unwrap_or_else(|| {
                all.push(Repetitions {
                    name: name.to_owned(),
                    ..Repetitions::default()
                });
                all.len() - 1
            });
            change(&mut all[place]);
        };
        match Entry::of(benchmark) {
            Entry::Aggregate => {}
            Entry::Fit => notes.push(format!(
                "`{own}` in {} is no time but part of a fitted complexity, and is left out",
                path.display()
            )),
            Entry::Skipped(why) => notes.push(format!(
                "`{name}` was skipped in {} and is left out: {why}",
                path.display()
            )),
            Entry::Failed(why) => add(&mut |one| one.failures.push(why.clone())),
            Entry::Time => {
                let seconds = seconds(path, &format!("benchmarks[{index}]"), benchmark)?;
                add(&mut |one| one.times.push(seconds));
            }
        }
    }
    let mut failed = Vec::new();
    let mut found = Vec::new();
    for Repetitions {
        name,
        times,
        failures,
    } in all
    {
        match failures.first() {
            None => found.push(Benchmark {
                name,
                processes: vec![times],
            }),
            Some(why) => {
                let said = format!(
                    "{} of {} repetitions: {why}",
                    failures.len(),
                    failures.len() + times.len()
                );
                notes.push(format!(
                    "`{name}` failed in {} and is left out, in {said}",
                    path.display()
                ));
                failed.push((name, said));
            }
        }
    }
    Ok(Measurements {
        failed,
        ..Measurements::new(path, PROGRAM, found, notes, REMEDY)?
    })
}

/// The elapsed time of a repetition.
fn seconds(path: &Path, field: &str, benchmark: &Value) -> Result<f64, SamplesError> {
    let time = number(
        path,
        &format!("{field}.real_time"),
        &benchmark["real_time"],
        "the elapsed time is missing",
    )?;
    let unit_name = text(path, &format!("{field}.time_unit"), &benchmark["time_unit"])?;
    let seconds = unit(unit_name).ok_or_else(|| {
        let message = format!("`{unit_name}` is no known unit of time");
        SamplesError::at(path, format!("{field}.time_unit"), message, REMEDY)
    })?;
    Ok(time * seconds)
}
