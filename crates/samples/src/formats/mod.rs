//! One module for each format; the content of a file decides which one reads it.

mod criterion;
mod csv_file;
mod google_benchmark;
mod hyperfine;
mod nvbench;
mod pytest_benchmark;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::SamplesError;
use crate::measurements::{Measurements, Order};

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
    if let Some(read) = criterion::read_messages(path, &source.text) {
        return read;
    }
    if let Some(value) = source.json()? {
        let found = JSON.iter().find_map(|read| read(path, &value));
        return found.unwrap_or_else(|| Err(unknown(path, &value)));
    }
    if let Some(read) = criterion::read_csv(path, &source.text) {
        return read;
    }
    csv_file::read(path, &source.text)
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
    let all = read(path)?;
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

    /// The file as JSON; none if it does not look like JSON.
    fn json(&self) -> Result<Option<Value>, SamplesError> {
        if !self.text.trim_start().starts_with(['{', '[']) {
            return Ok(None);
        }
        serde_json::from_str(&self.text).map(Some).map_err(|error| {
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
    let fields: Vec<_> = value
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
    let wrong = |place: String| {
        SamplesError::at(
            path,
            place,
            "a list of numbers is expected here",
            "export the measurements again",
        )
    };
    let list = value.as_array().ok_or_else(|| wrong(field.to_owned()))?;
    list.iter()
        .enumerate()
        .map(|(index, number)| number.as_f64().ok_or_else(|| wrong(format!("{field}[{index}]"))))
        .collect()
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
