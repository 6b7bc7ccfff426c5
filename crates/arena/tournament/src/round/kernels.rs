//! The task of a round, and the kernels that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_entrants::{
    EntrantError, Source, candidate, digests, find_task_with, notes_of_solutions, read, tensors_of,
};
use gauntlet_judge::{Candidate, ExecutorKind, FileKind, KernelText};
use gauntlet_parameters::Parameters;
use gauntlet_python_task::Options;
use gauntlet_task::Suite;

use super::RoundFile;
use super::named::is_path;
use crate::pitch::Pitch;
use crate::records::BASELINE;

/// The suite of a round. What the file names is looked for beside it, and a baseline in Python stands in for the reference
/// that a task lacks.
pub fn load_suite(source: &Source<RoundFile>) -> Result<Suite, EntrantError> {
    let name = &source.value.suite;
    let beside = source.resolve(Path::new(name));
    let is_file = is_path(name) || gauntlet_python_task::is_task(&beside);
    let place = if is_file {
        beside.display().to_string()
    } else {
        name.clone()
    };
    let baseline = source
        .value
        .baseline
        .as_ref()
        .and_then(|baseline| baseline.kernel.as_ref());
    let text = baseline.and_then(|text| text.parse::<KernelText>().ok());
    let text = text.map(|text| text.in_folder(source.folder()));
    let python = text.as_ref().and_then(|text| text.in_file(FileKind::Python));
    let options = Options {
        baseline: python.map(|kernel| (kernel.file.clone(), kernel.function.clone())),
        cases: source.value.cases.clone(),
        ..Options::default()
    };
    find_task_with(&place, &options).map_err(|error| at(source, name, error))
}

/// Kernels that a round names.
#[derive(Default)]
pub struct Named {
    /// Each as a candidate, by the name of the baseline or the pitch.
    pub candidates: BTreeMap<String, Candidate>,
    /// Their texts, with files by paths that lead there from the current folder.
    texts: Vec<KernelText>,
}

/// The kernels that the baseline and the pitches name, except functions of the source.
pub fn load_kernels(
    source: &Source<RoundFile>,
    pitches: &[Source<Pitch>],
    suite: &Suite,
) -> Result<Named, EntrantError> {
    let table = suite.parameters();
    let tensors = tensors_of(suite, source.value.executor == ExecutorKind::Cuda);
    let mut named = Named::default();
    let mut made = |place: &Source<()>, name: &str, kernel: &str, base: &Parameters| {
        let text = read(kernel).map_err(|error| at(place, kernel, error))?;
        notes_of_solutions(suite, &[&text]).map_err(|error| at(place, kernel, error))?;
        let text = text.in_folder(place.folder());
        let made = candidate(name, &text, base, &table, tensors);
        named.texts.push(text);
        made.map_err(|error| at(place, kernel, error))
    };
    let mut kernels = BTreeMap::new();
    let mut base = Parameters::new();
    if let Some(kernel) = source
        .value
        .baseline
        .as_ref()
        .and_then(|baseline| baseline.kernel.as_ref())
    {
        let baseline = made(&source.with(()), BASELINE, kernel, &base)?;
        if baseline.command.is_none() {
            base = baseline.schedule.clone();
        }
        kernels.insert(BASELINE.to_owned(), baseline);
    }
    for pitch in pitches.iter().filter(|pitch| !pitch.value.changes_source()) {
        let Some(kernel) = &pitch.value.kernel else {
            continue;
        };
        let name = &pitch.value.name;
        let mut candidate = made(&pitch.with(()), name, kernel, &base)?;
        candidate.schedule = candidate.schedule.changed(&pitch.value.schedule);
        kernels.insert(name.clone(), candidate);
    }
    named.candidates = kernels;
    Ok(named)
}

/// Digests of the files that the task, the kernels and the programs of a round consist of; unreadable ones are skipped.
pub fn digests_of_files(
    source: &Source<RoundFile>,
    suite: &Suite,
    named: &Named,
    pitches: &[Pitch],
) -> Vec<String> {
    let task = source.resolve(Path::new(&source.value.suite));
    let of_kernels = digests(&task.display().to_string(), suite, &named.texts, None);
    let baseline = source.value.baseline.iter().map(|baseline| &baseline.command);
    let commands = baseline.chain(pitches.iter().map(|pitch| &pitch.command));
    let programs = commands
        .flatten()
        .flatten()
        .map(|part: &PathBuf| source.resolve(part));
    programs
        .filter(|path| path.is_file())
        .filter_map(|path| std::fs::read(path).ok())
        .map(|bytes| blake3::hash(&bytes).to_hex().to_string())
        .chain(of_kernels.into_values())
        .collect()
}

/// An error about a name, at its place in the file.
fn at<T>(source: &Source<T>, name: &str, error: EntrantError) -> EntrantError {
    match error {
        EntrantError::Wrong { message, remedy } => source.error_at(name, message, remedy).into(),
        // A file that cannot be read at all is best named where it is asked for.
        EntrantError::File(error) if error.text.is_empty() => {
            source.error_at(name, error.message, error.remedy).into()
        }
        other => other,
    }
}
