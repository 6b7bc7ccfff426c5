//! Files of the server's folder, which is the current one: the sources of a judgement, tasks, rounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use gauntlet_judge::{KernelForm, KernelText};
use gauntlet_queue::Judgement;

/// The most bytes that a judgement's files hold together.
const MAX_BYTES: usize = 64 << 20;

/// The most entries of folders that are looked at for tasks.
const MAX_ENTRIES: usize = 2000;

/// The contents of the files that a judgement needs, by path. Names in full become relative to the folder.
///
/// # Errors
/// If a name is no kernel, or a file lies outside of the folder, is too large or cannot be read.
pub fn sources(judgement: &mut Judgement) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let here = std::env::current_dir().map_err(|error| format!("the folder cannot be read: {error}"))?;
    let prefix = format!("{}/", here.display());
    let names = std::iter::once(&mut judgement.task)
        .chain(&mut judgement.kernels)
        .chain(&mut judgement.device);
    names.for_each(|name| *name = name.replace(&prefix, ""));
    let read = |text: &String| text.parse::<KernelText>();
    let kernels: Vec<KernelText> = judgement
        .kernels
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{error}; {}", error.remedy()))?;
    let mut files = BTreeMap::new();
    let mut bytes = 0;
    let mut named = gauntlet_entrants::task_files(Path::new(&judgement.task));
    named.extend(kernels.iter().flat_map(KernelText::files));
    // A device by its name is in no file.
    named.extend(
        judgement
            .device
            .iter()
            .map(PathBuf::from)
            .filter(|path| path.is_file()),
    );
    for path in gauntlet_entrants::digests_of(named)
        .into_keys()
        .map(PathBuf::from)
    {
        let name = path.strip_prefix(".").unwrap_or(&path);
        if !is_inside(name, &here) {
            // Words of a command may be programs of the machine, which every ticket finds there.
            if kernels
                .iter()
                .any(|kernel| matches!(kernel.form(), KernelForm::Command(_)))
                && name.is_absolute()
            {
                continue;
            }
            return Err(format!(
                "{} lies outside of the folder {}; name files in it by their path from there",
                path.display(),
                here.display()
            ));
        }
        let contents =
            fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        bytes += contents.len();
        if bytes > MAX_BYTES {
            return Err(format!(
                "the files that this needs hold more than {} MiB, {} among them; use smaller ones",
                MAX_BYTES >> 20,
                path.display()
            ));
        }
        files.insert(name.display().to_string(), contents);
    }
    Ok(files)
}

/// Why a task may not be read; none if it is built in, or a file of the folder.
pub fn refusal(task: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let path = Path::new(task);
    let name = path
        .strip_prefix(&here)
        .or_else(|_| path.strip_prefix("."))
        .unwrap_or(path);
    let is_outside = path.exists() && !is_inside(name, &here);
    is_outside.then(|| {
        format!(
            "{task} lies outside of the folder {}; name files in it by their path from there",
            here.display()
        )
    })
}

/// Whether a path stays in a folder, links included.
fn is_inside(path: &Path, folder: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let folder = folder.canonicalize().ok();
    is_plain
        && path
            .canonicalize()
            .ok()
            .zip(folder)
            .is_some_and(|(path, folder)| path.starts_with(folder))
}

/// The tasks in the folder and in those right below it, as far as their texts tell: nothing is imported.
pub fn tasks() -> Vec<String> {
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut folders = vec![(PathBuf::from("."), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        for path in entries.into_iter().take(left) {
            left = left.saturating_sub(1);
            let is_hidden = path
                .file_name()
                .is_none_or(|name| name.to_string_lossy().starts_with(['.', '_']));
            let name = path.strip_prefix(".").unwrap_or(&path).display().to_string();
            if is_hidden || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                let is_task = ["task.yml", "definition.json"]
                    .iter()
                    .any(|file| path.join(file).is_file());
                if is_task {
                    found.push(name);
                } else if depth < 2 {
                    folders.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|ending| ending == "py") && is_task_in_python(&path) {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

fn is_task_in_python(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let has = |words: [&str; 2]| words.iter().all(|word| text.contains(word));
    has(["def generate(", "cases"]) || has(["class Model(", "def get_inputs("])
}

/// The folder of a round in which pitches are put: the first that its `pitches` names.
pub fn folder_of_pitches(round: &Path) -> Result<(String, PathBuf), String> {
    let shown = round.display();
    let text = fs::read_to_string(round).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{shown}: {error}"))?;
    let name = table
        .get("name")
        .and_then(toml::Value::as_str)
        .unwrap_or_default();
    let pitches = table.get("pitches").and_then(toml::Value::as_array);
    let pitches = pitches.into_iter().flatten().filter_map(toml::Value::as_str);
    let beside = round.parent().unwrap_or(Path::new("."));
    let folder = pitches.map(|path| beside.join(path)).find(|path| path.is_dir());
    folder.map(|folder| (name.to_owned(), folder)).ok_or_else(|| {
        format!(
            "{shown} is not open to pitches: name a folder in its `pitches`, as in pitches = [\"pitches\"]"
        )
    })
}
