//! One module for each format; the content of a file decides which one reads it.

mod criterion;
mod csv_file;
mod google_benchmark;
mod hyperfine;
mod json;
mod nvbench;
mod pytest_benchmark;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::SamplesError;
use crate::measurements::{Measurements, Order, Origin};

/// The formats, in words, for messages.
const KNOWN: &str = "known are the JSON files of nvbench (--jsonbin), hyperfine (--export-json), pytest-benchmark \
    (--benchmark-json), google-benchmark (--benchmark_out) and criterion (sample.json, raw.csv, messages of cargo-criterion), \
    and CSV files with a column `seconds`";

/// A file, read but not understood.
struct Source<'f> {
    path: &'f Path,
    text: String,
}

/// The reader of a JSON format: none if the value is of another format.
type JsonReader = fn(&Path, &Value) -> Option<Result<Measurements, SamplesError>>;

const JSON: [JsonReader; 5] = [
    nvbench::read,
    hyperfine::read,
    pytest_benchmark::read,
    google_benchmark::read,
    criterion::read_sample,
];

/// Reads a file of one side.
///
/// # Errors
/// A file that cannot be read, is in no known format, or lacks times.
pub fn read(path: &Path) -> Result<Measurements, SamplesError> {
    let source = Source::of(path)?;
    let mut measurements = source.read()?;
    measurements
        .files
        .push(Origin::of(path, &source.text, &measurements.benchmarks));
    Ok(measurements)
}

/// Reads a file that holds both sides: a CSV file with the columns `baseline` and `candidate`, or any other with exactly two
/// benchmarks, of which the first is the baseline.
///
/// # Errors
/// As [`read`]; and a file with another number of benchmarks.
pub fn read_both(path: &Path) -> Result<[Measurements; 2], SamplesError> {
    let source = Source::of(path)?;
    if source.json()?.is_none()
        && let Some(both) = csv_file::read_both(path, &source.text)
    {
        return both;
    }
    let all = source.read()?;
    let [baseline, candidate] = &all.benchmarks[..] else {
        return Err(SamplesError::whole(
            path,
            format!(
                "it holds {} benchmarks, and a single file must hold two: the baseline and the candidate",
                all.benchmarks.len()
            ),
            "name a file for each side, or a CSV file with the columns `baseline` and `candidate`",
        ));
    };
    let side = |benchmark: &crate::Benchmark| Measurements {
        benchmarks: vec![benchmark.clone()],
        order: Order::OneAfterTheOther,
        ..all.clone()
    };
    Ok([side(baseline), side(candidate)])
}

impl<'f> Source<'f> {
    fn of(path: &'f Path) -> Result<Self, SamplesError> {
        if path.is_dir() {
            return Err(SamplesError::whole(
                path,
                "it is a folder",
                format!("name a file in it; {KNOWN}"),
            ));
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            SamplesError::whole(
                path,
                format!("it cannot be read: {error}"),
                format!("name a text file; {KNOWN}"),
            )
        })?;
        Ok(Self { path, text })
    }

    fn read(&self) -> Result<Measurements, SamplesError> {
        if let Some(read) = criterion::read_messages(self.path, &self.text) {
            return read;
        }
        if let Some(value) = self.json()? {
            let found = JSON.iter().find_map(|read| read(self.path, &value));
            return found.unwrap_or_else(|| Err(unknown(self.path, &value)));
        }
        if let Some(read) = criterion::read_csv(self.path, &self.text) {
            return read;
        }
        csv_file::read(self.path, &self.text)
    }

    /// The file as JSON; none if it does not look like JSON.
    fn json(&self) -> Result<Option<Value>, SamplesError> {
        if !self.text.trim_start().starts_with(['{', '[']) {
            return Ok(None);
        }
        json::parse(&self.text).map(Some).map_err(|error| {
            SamplesError::at(
                self.path,
                error.line(),
                format!("not JSON: {error}"),
                "the file was cut or changed after it was written; export it again",
            )
        })
    }
}

fn unknown(path: &Path, value: &Value) -> SamplesError {
    let is_ours = value["schema"]
        .as_str()
        .is_some_and(|schema| schema.starts_with("gauntlet/"));
    if is_ours {
        return SamplesError::whole(
            path,
            "it is a result of gauntlet itself, which holds both sides and their verdict",
            "`gauntlet report FILE` shows it",
        );
    }
    let record = value.get(0).unwrap_or(value);
    let fields: Vec<_> = record
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .take(8)
        .collect();
    SamplesError::whole(
        path,
        format!("its format is not known; its fields are: {}", fields.join(", ")),
        format!("export it as one of the formats that are read; {KNOWN}"),
    )
}

/// Numbers of a JSON array; the error names the field and the element.
fn numbers(path: &Path, field: &str, value: &Value) -> Result<Vec<f64>, SamplesError> {
    let expected = "a list of numbers is expected here";
    let list = value
        .as_array()
        .ok_or_else(|| SamplesError::at(path, field, expected, "export the measurements again"))?;
    list.iter()
        .enumerate()
        .map(|(index, one)| number(path, &format!("{field}[{index}]"), one, expected))
        .collect()
}

/// A number; `expected` says what is missing where there is none.
fn number(path: &Path, field: &str, value: &Value, expected: &str) -> Result<f64, SamplesError> {
    value.as_f64().ok_or_else(|| match json::not_finite(value) {
        Some(written) => SamplesError::at(
            path,
            field,
            format!("it is {written}, and no call takes that"),
            "remove the call from the file, or measure again",
        ),
        None => SamplesError::at(path, field, expected, "export the measurements again"),
    })
}

/// Refuses measurements in which runs failed: a program that ends early looks fast. `codes` are the exit codes of the runs,
/// none for a run that was killed.
fn refuse_failed(path: &Path, place: &str, name: &str, codes: &[Option<i64>]) -> Result<(), SamplesError> {
    let mut reasons: Vec<String> = Vec::new();
    let mut failed = 0;
    for code in codes.iter().filter(|code| **code != Some(0)) {
        let reason = code.map_or("killed by a signal".to_owned(), |code| {
            format!("exit code {code}")
        });
        failed += 1;
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if failed == 0 {
        return Ok(());
    }
    Err(SamplesError::at(
        path,
        place,
        format!(
            "`{name}` failed in {failed} of {} runs ({})",
            codes.len(),
            reasons.join(", ")
        ),
        "the times of failed runs say nothing: make every run end with exit code 0, and measure again",
    ))
}

/// A text field.
fn text<'v>(path: &Path, field: &str, value: &'v Value) -> Result<&'v str, SamplesError> {
    value.as_str().ok_or_else(|| {
        SamplesError::at(
            path,
            field,
            "a text is expected here",
            "export the measurements again",
        )
    })
}

/// The seconds of a unit of time.
fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "ms" | "milliseconds" => 1e-3,
        "us" | "µs" | "μs" | "microseconds" => 1e-6,
        "ns" | "nanoseconds" => 1e-9,
        "ps" => 1e-12,
        _ => return None,
    })
}

/// A path beside a file, for paths that the file names.
fn beside(path: &Path, named: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(named)
}
