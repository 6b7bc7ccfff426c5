//! What a round file names: device, suite, record, cases, programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_device::{Device, DeviceError};
use gauntlet_executor::Record;
use gauntlet_problem::{Case, Suite};
use gauntlet_schedule::DispatchTable;

use super::{ExecutorKind, Overrides, RoundFile};
use crate::pitch::Pitch;
use crate::source::{FileError, Source};

/// A device without what the system tells anew each time: the clock of a machine at hand may be that of this moment.
pub(super) fn lasting(device: &Device) -> Device {
    let mut device = device.clone();
    if let Some(cpu) = &mut device.cpu {
        device.clock = None;
        cpu.fp32_peak = None;
    }
    device
}

/// Digests of the operands and the programs that the files name; none of what cannot be read.
pub(super) fn digests_of_named_files(
    source: &Source<RoundFile>,
    suite: &Suite,
    pitches: &[Pitch],
) -> Vec<String> {
    let operands = suite.correctness.iter().chain(&suite.benchmark);
    let operands = operands.filter_map(|case| case.data.clone());
    let baseline = source.value.baseline.iter().map(|baseline| &baseline.command);
    let commands = baseline.chain(pitches.iter().map(|pitch| &pitch.command));
    let programs = commands.flatten().flatten().map(|part| source.resolve(part));
    operands
        .chain(programs)
        .filter(|path| path.is_file())
        .filter_map(|path| std::fs::read(path).ok())
        .map(|bytes| blake3::hash(&bytes).to_hex().to_string())
        .collect()
}

pub(super) fn override_with(file: &mut RoundFile, overrides: &Overrides) {
    if let Some(executor) = overrides.executor {
        file.executor = executor;
    }
    if let Some(device) = &overrides.device {
        file.device.clone_from(device);
    }
    if let Some(suite) = &overrides.suite {
        file.suite.clone_from(suite);
        file.cases.clear();
    }
    if let Some(budget) = overrides.budget {
        file.measurement.budget = budget;
    }
    if let Some(host) = &overrides.host {
        file.host = Some(host.clone());
    }
}

pub(super) fn load_device(source: &Source<RoundFile>) -> Result<Device, FileError> {
    let name = &source.value.device;
    let found = if name == "host" {
        Ok(Device::host())
    } else if is_path(name) {
        Device::load(&source.resolve(Path::new(name)))
    } else {
        Device::builtin(name)
    };
    found.map_err(|error| match error {
        DeviceError::Invalid { file, span, message } => FileError {
            text: std::fs::read_to_string(&file).unwrap_or_default(),
            path: file,
            span,
            message,
            remedy: "correct the device file at this place".to_owned(),
        },
        error => {
            let remedy = format!(
                "use host, a path to a device file, or one of {}",
                Device::builtin_names().collect::<Vec<_>>().join(", ")
            );
            source.error_at(name, error.to_string(), remedy)
        }
    })
}

pub(super) fn load_suite(source: &Source<RoundFile>) -> Result<Suite, FileError> {
    let name = &source.value.suite;
    let found = if is_path(name) {
        Suite::load(&source.resolve(Path::new(name)))
    } else {
        Suite::builtin(name)
    };
    found
        .map_err(|error| FileError::of_suite(error, |message, remedy| source.error_at(name, message, remedy)))
}

pub(super) fn load_record(source: &Source<RoundFile>) -> Result<Option<Record>, FileError> {
    match (&source.value.record, source.value.executor) {
        (Some(path), ExecutorKind::Replay) => {
            Record::load(&source.resolve(path))
                .map(Some)
                .map_err(|error| match error {
                    gauntlet_executor::RecordError::Malformed {
                        path,
                        text,
                        span,
                        message,
                    } => FileError {
                        path,
                        text,
                        span,
                        message,
                        remedy: "correct the record at this place".to_owned(),
                    },
                    other => source.error_at("record", other.to_string(), "check the round's `record`"),
                })
        }
        (None, ExecutorKind::Replay) => Err(source.error_at(
            "executor",
            "executor = \"replay\" without a `record`",
            "name the file of recorded times: record = \"…\"",
        )),
        (_, ExecutorKind::Cpu | ExecutorKind::Cuda | ExecutorKind::Model) => Ok(None),
    }
}

/// The dispatch tables that the baseline and the pitches name, each sought from the file that names it.
pub(super) fn load_dispatch(
    source: &Source<RoundFile>,
    pitches: &[Source<Pitch>],
) -> Result<BTreeMap<PathBuf, DispatchTable>, FileError> {
    let baseline = source.value.baseline.as_ref();
    let of_baseline = baseline.and_then(|baseline| baseline.dispatch.as_ref());
    let mut named = Vec::from_iter(of_baseline.map(|file| (source.with(()), file)));
    for pitch in pitches {
        named.extend(pitch.value.dispatch.as_ref().map(|file| (pitch.with(()), file)));
    }
    let mut tables = BTreeMap::new();
    for (place, file) in named {
        let table = DispatchTable::load(&place.resolve(file)).map_err(|error| {
            place.error_at(
                &file.display().to_string(),
                error.to_string(),
                "name a table that `gauntlet tune --output FILE` has written",
            )
        })?;
        if tables.get(file).is_some_and(|known| *known != table) {
            return Err(place.error_at(
                &file.display().to_string(),
                format!(
                    "another file beside another pitch is called `{}` too",
                    file.display()
                ),
                "give the two tables different names",
            ));
        }
        tables.insert(file.clone(), table);
    }
    Ok(tables)
}

/// A name with a slash or an ending is a path.
fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

pub(super) fn chosen_cases(source: &Source<RoundFile>, suite: &Suite) -> Result<Vec<Case>, FileError> {
    let wanted = &source.value.cases;
    if wanted.is_empty() {
        return Ok(suite.benchmark.clone());
    }
    let known: Vec<_> = suite.benchmark.iter().map(|case| case.name.as_str()).collect();
    wanted
        .iter()
        .map(|name| {
            suite
                .benchmark
                .iter()
                .find(|case| case.name == *name)
                .cloned()
                .ok_or_else(|| {
                    let message = format!("the suite {} has no benchmark case `{name}`", suite.name);
                    source.error_at(name, message, format!("one of {}", known.join(", ")))
                })
        })
        .collect()
}
