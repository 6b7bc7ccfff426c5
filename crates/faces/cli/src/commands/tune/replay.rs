//! `gauntlet tune --replay`: the search over recorded times.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use gauntlet_tuning::recorded::{RecordedSpace, written};
use gauntlet_tuning::replay::{Mark, evaluated, replayed};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Replay;
use crate::documents::{Document, Versioned};
use crate::error::{CliError, terminal_width};
use crate::exit::Exit;
use crate::sink;

/// The first bytes of a file that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The result of `gauntlet tune --replay`.
#[derive(Serialize, JsonSchema)]
pub struct Replayed {
    /// The file.
    record: String,
    /// What the record calls the time.
    objective: String,
    /// Points of the record.
    points: usize,
    /// Of these, points that failed.
    failed: usize,
    /// The shortest time, in the record's unit.
    optimum: Option<f64>,
    /// Searches.
    seeds: usize,
    /// What they found.
    found: Vec<Mark>,
}

impl Document for Replayed {
    const NAME: &'static str = "replay";
    const VERSION: u32 = 1;
}

/// Searches recorded times and says how close to the optimum the search comes.
pub fn replay(
    file: &Path,
    arguments: &Replay,
    evaluations: usize,
    json: Option<&Path>,
) -> Result<Exit, CliError> {
    json.into_iter()
        .chain(arguments.t4.as_deref())
        .try_for_each(sink::check)?;
    let recorded = RecordedSpace::read(&text(file)?).map_err(|error| {
        CliError::bad_input(
            format!("{}: {error}", file.display()),
            "give a T4 file or a cache file of Kernel Tuner, with a time for each configuration",
        )
    })?;
    let result = Replayed {
        record: file.display().to_string(),
        objective: recorded.objective.clone(),
        points: recorded.points.len(),
        failed: recorded.times.iter().filter(|time| time.is_none()).count(),
        optimum: recorded.optimum(),
        seeds: arguments.seeds.into(),
        found: replayed(&recorded, arguments.seeds.into(), evaluations),
    };
    if let Some(path) = &arguments.t4 {
        sink::write_json(path, &written(&recorded, &evaluated(&recorded, 0, evaluations)))?;
    }
    sink::deliver(json, &Versioned::of(&result), || {
        sink::line(format_args!(
            "{}: {} points, {} failed; medians of {} searches.",
            result.record, result.points, result.failed, result.seeds
        ))?;
        sink::print(gauntlet_report::replay(&result.found, terminal_width()))
    })?;
    Ok(Exit::Done)
}

/// The text of a file, plain or compressed with gzip.
fn text(file: &Path) -> Result<String, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::bad_input(
            format!("{}: {error}", file.display()),
            "give a file that can be read, plain or compressed with gzip",
        )
    };
    let bytes = fs::read(file).map_err(unreadable)?;
    let mut text = String::new();
    if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text)
    } else {
        bytes.as_slice().read_to_string(&mut text)
    }
    .map_err(unreadable)?;
    Ok(text)
}
