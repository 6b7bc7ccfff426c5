//! nvbench, `--jsonbin FILE`: `{"meta", "devices", "benchmarks": [{"name", "states": [{"name", "is_skipped", "summaries": [{"tag",
//! "data": [{"name", "value"}]}]}]}]}`.
//!
//! The times of the single calls are in files beside it, as 32-bit floats in seconds, little-endian; the summary
//! `nv/json/bin:nv/cold/sample_times` names the file and the number of times. All calls of a state run in one process.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{beside, text};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements};

const PROGRAM: &str = "nvbench";

/// How to export so that each call is in the file.
const REMEDY: &str =
    "export with `--jsonbin FILE` in place of `--json FILE`, and keep the folder FILE-bin beside the file";

/// The summary that names the file of times.
const TIMES: &str = "nv/json/bin:nv/cold/sample_times";

/// Bytes of a time.
const FLOAT: u64 = 4;

/// The measurements; none if the file is not of this format.
pub fn read(path: &Path, value: &Value) -> Option<Result<Measurements, SamplesError>> {
    let benchmarks = value.get("benchmarks")?.as_array()?;
    let is_ours = |one: &Value| one.get("states").is_some_and(Value::is_array);
    let matches =
        benchmarks.iter().all(is_ours) && (!benchmarks.is_empty() || value.get("devices").is_some());
    matches.then(|| of_benchmarks(path, benchmarks))
}

fn of_benchmarks(path: &Path, benchmarks: &[Value]) -> Result<Measurements, SamplesError> {
    let mut found = Vec::new();
    let mut notes = Vec::new();
    for (index, benchmark) in benchmarks.iter().enumerate() {
        let name = text(path, &format!("benchmarks[{index}].name"), &benchmark["name"])?;
        for (number, state) in benchmark["states"].as_array().into_iter().flatten().enumerate() {
            let field = format!("benchmarks[{index}].states[{number}]");
            let name = format!("{name} {}", state["name"].as_str().unwrap_or_default());
            let name = name.trim_end().to_owned();
            if state["is_skipped"] == true {
                let why = state["skip_reason"].as_str().unwrap_or("no reason is given");
                notes.push(format!(
                    "`{name}` was skipped in {} and is left out: {why}",
                    path.display()
                ));
                continue;
            }
            found.push(Benchmark {
                processes: vec![times(path, &field, state)?],
                name,
            });
        }
    }
    Measurements::new(path, PROGRAM, found, notes, REMEDY)
}

/// The times of a state's calls.
fn times(path: &Path, field: &str, state: &Value) -> Result<Vec<f64>, SamplesError> {
    let summaries = state["summaries"].as_array().into_iter().flatten();
    let summary = summaries
        .into_iter()
        .find(|summary| summary["tag"] == TIMES)
        .ok_or_else(|| {
            let message = format!("the times of the single calls are missing (`{TIMES}`)");
            SamplesError::at(path, format!("{field}.summaries"), message, REMEDY)
        })?;
    let datum = |name: &str| {
        let data = summary["data"].as_array().into_iter().flatten();
        data.into_iter()
            .find(|one| one["name"] == name)
            .map_or(&Value::Null, |one| &one["value"])
    };
    let name = text(path, &format!("{field}: filename of {TIMES}"), datum("filename"))?;
    let file = file_of(path, name);
    let refuse = |message: String| SamplesError::at(path, field, message, REMEDY);
    let unreadable = |error: std::io::Error| {
        refuse(format!(
            "the file of times {} cannot be read: {error}",
            file.display()
        ))
    };
    let found = std::fs::metadata(&file).map_err(unreadable)?;
    if !found.is_file() {
        return Err(refuse(format!("{} is no file of times", file.display())));
    }
    let expected = size(datum("size")).map_err(|said| refuse(format!("{said} is no number of times")))?;
    let is_whole = found.len().is_multiple_of(FLOAT);
    if !is_whole || expected.is_some_and(|count| found.len() / FLOAT != count) {
        let expected = expected.map_or("whole 32-bit floats".to_owned(), |count| {
            format!("{count} 32-bit floats")
        });
        return Err(refuse(format!(
            "{} holds {} bytes and not {expected}",
            file.display(),
            found.len()
        )));
    }
    let bytes = std::fs::read(&file).map_err(unreadable)?;
    let float = |bytes: &[u8]| f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    Ok(bytes.chunks_exact(FLOAT as usize).map(float).collect())
}

/// The number of times that a file should hold, if it is said; what is said if that is no number. Integers are written as
/// texts.
fn size(said: &Value) -> Result<Option<u64>, String> {
    let count = match said {
        Value::Null => return Ok(None),
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    count.map(Some).ok_or_else(|| format!("the size {said}"))
}

/// The file of times: newer versions name it relative to the JSON file, older ones relative to the folder in which nvbench
/// ran.
fn file_of(path: &Path, name: &str) -> PathBuf {
    let in_place = beside(path, name);
    if in_place.exists() {
        return in_place;
    }
    let parts = Path::new(name);
    let (Some(file), Some(folder)) = (parts.file_name(), parts.parent().and_then(Path::file_name)) else {
        return in_place;
    };
    let moved = path.parent().unwrap_or(Path::new("")).join(folder).join(file);
    if moved.exists() { moved } else { in_place }
}
