//! The things that a round file names: device, record, dispatch tables, cases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_device::{Device, DeviceError};
use gauntlet_task::{Case, DispatchTable, Suite};
use gauntlet_worker::Record;

use gauntlet_entrants::{FileError, Source};
use gauntlet_judge::ExecutorKind;

use super::{Overrides, Round, RoundFile};
use crate::pitch::Pitch;

/// A device without the properties that the system reports at run time: the clock of a local machine may be a momentary
/// value.
pub(crate) fn lasting(device: &Device) -> Device {
    let mut device = device.clone();
    if device.cpu.is_some() {
        device.clock = None;
    }
    device
}

pub(super) fn override_with(file: &mut RoundFile, overrides: &Overrides) {
    if let Some(executor) = overrides.executor {
        file.executor = executor;
    }
    if let Some(device) = &overrides.device {
        file.device = from_here(device);
    }
    if let Some(suite) = &overrides.suite {
        file.suite = from_here(suite);
        file.cases.clear();
    }
    if let Some(budget) = overrides.budget {
        file.measurement.budget = budget;
    }
}

/// A name that stands for a file of the current folder as a path from everywhere: names in a round are looked for beside
/// its file, and those on the command line first where the command was given.
fn from_here(name: &str) -> String {
    let absolute = std::path::absolute(name).ok();
    let file = absolute.filter(|path| is_path(name) && path.is_file());
    file.and_then(|path| path.to_str().map(str::to_owned))
        .unwrap_or_else(|| name.to_owned())
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

pub(super) fn load_record(source: &Source<RoundFile>) -> Result<Option<Record>, FileError> {
    match (&source.value.record, source.value.executor) {
        (Some(path), ExecutorKind::Replay) => {
            Record::load(&source.resolve(path))
                .map(Some)
                .map_err(|error| match error {
                    gauntlet_worker::RecordError::Malformed {
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
        (_, ExecutorKind::Cpu | ExecutorKind::Cuda) => Ok(None),
    }
}

impl Round {
    /// Doubts about the named dispatch tables, each with the remedy: schedules from another environment, or chosen by
    /// the model alone, may be tried, but the table is no evidence for them here.
    pub(crate) fn doubts_of_tables(&self) -> Vec<String> {
        let (executor, device) = (self.file().executor, &self.setting.device.name);
        let remedy = match executor {
            ExecutorKind::Cpu => "`gauntlet tune` makes one by measuring here".to_owned(),
            ExecutorKind::Cuda => {
                format!("`gauntlet tune --executor cuda --device {device}` makes one by measuring there")
            }
            ExecutorKind::Replay => {
                format!("`gauntlet tune --executor model --device {device}` makes one for it")
            }
        };
        let doubtful = self.dispatch.iter().filter_map(|(file, table)| {
            let mut doubts = Vec::new();
            if table.device != *device {
                doubts.push(format!("was made for {}, not for {device}", table.device));
            }
            let predicted = table.predicted();
            if predicted > 0 && matches!(executor, ExecutorKind::Cpu | ExecutorKind::Cuda) {
                let all = table.entries.len();
                doubts.push(format!(
                    "is predicted, not measured, in {predicted} of its {all} entries"
                ));
            }
            let doubts = Some(doubts.join(" and ")).filter(|doubts| !doubts.is_empty())?;
            Some(format!(
                "the dispatch table {} {doubts}; {remedy}",
                file.display()
            ))
        });
        doubtful.collect()
    }
}

/// The dispatch tables that the baseline and the pitches name, each relative to the file that names it.
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
        let table = gauntlet_families::load_dispatch(&place.resolve(file)).map_err(|error| {
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

/// A name with a slash or an extension is a path.
pub(super) fn is_path(name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use gauntlet_judge::Candidate;

    use super::*;
    use gauntlet_parameters::Parameters;
    use gauntlet_task::{DispatchEntry, DispatchEvidence};

    /// A round on an H200 whose table was made for a device, and the table.
    fn round_with(device: &str, evidence: DispatchEvidence) -> (Round, DispatchTable) {
        let suite = gauntlet_families::suite("group-gemm").unwrap();
        let h200 = Device::builtin("h200").unwrap();
        let mut round = Round::without_pitches(h200, &suite);
        let table = DispatchTable {
            version: 1,
            device: device.to_owned(),
            executor: "cuda".to_owned(),
            gauntlet: "0.1.0".to_owned(),
            made: "2026-11-21T03:00:00Z".to_owned(),
            entries: vec![DispatchEntry {
                case: suite.benchmark[0].name.clone(),
                problem: suite.benchmark[0].sizes.to_record(),
                schedule: Parameters::new(),
                evidence,
                speedup: None,
                model_choice: None,
            }],
        };
        round.dispatch.insert(PathBuf::from("table.toml"), table.clone());
        (round, table)
    }

    #[test]
    fn a_table_of_another_device_or_of_the_model_is_named_with_the_remedy() {
        let (round, _) = round_with("h200", DispatchEvidence::Measured);
        assert_eq!(round.doubts_of_tables(), [""; 0]);

        let (mut round, _) = round_with("b200", DispatchEvidence::Predicted);
        let said = round.doubts_of_tables().join("\n");
        for words in [
            "table.toml",
            "made for b200, not for h200",
            "predicted, not measured, in 1 of its 1 entries",
            "gauntlet tune --executor cuda --device h200",
        ] {
            assert!(said.contains(words), "{said}");
        }
        round.source.value.executor = ExecutorKind::Replay;
        let said = round.doubts_of_tables().join("\n");
        assert!(said.contains("b200") && !said.contains("measured"), "{said}");
    }

    #[test]
    fn a_choice_says_what_speaks_against_its_table() {
        let said = |device: &str, evidence| {
            let (round, table) = round_with(device, evidence);
            let candidate = Candidate {
                dispatch: Some(table),
                ..Candidate::new("candidate", Parameters::new())
            };
            let (_, why) =
                candidate.choice_for(&round.setting.benchmark_cases[0].sizes, &round.setting.device);
            why
        };
        let plain = said("h200", DispatchEvidence::Measured);
        assert!(plain.ends_with("the same problem"), "{plain}");
        let doubtful = said("b200", DispatchEvidence::Predicted);
        assert!(
            doubtful.ends_with("predicted, not measured; made for b200, not h200"),
            "{doubtful}"
        );
    }
}
