//! `gauntlet ledger repeat`: the sources of a verdict, and the command that gave it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use gauntlet_judge::ledger::{Ledger, Sources};

use crate::commands::report::run_of;
use crate::error::CliError;
use crate::exit::Exit;
use crate::sink;

/// Writes the sources of a run into a folder, and prints its command with the names that they have there.
pub fn repeat(ledger: &Ledger, run: &str, into: &Path) -> Result<Exit, CliError> {
    let run = run_of(ledger, run)?.id;
    let Some(judgement) = ledger.judgement(&run)? else {
        return Err(CliError::bad_input(
            format!("run {run} is a round or a tournament, whose sources are not kept"),
            "name a run of `compare`, `judge`, `check` or `tune`; `gauntlet ledger verdicts` lists them",
        ));
    };
    let is_empty = std::fs::read_dir(into).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty {
        return Err(CliError::bad_input(
            format!("{} is not empty", into.display()),
            "give a folder that does not exist yet",
        ));
    }
    let sources = Sources::beside(ledger.path());
    let mut places = BTreeMap::new();
    for (file, digest) in &judgement.sources {
        let contents = sources
            .read(digest)
            .map_err(|error| CliError::broken(format!("the contents of {file} cannot be read: {error}")))?;
        let Some(contents) = contents else {
            return Err(CliError::bad_input(
                format!(
                    "the contents of {file} ({digest}) are not kept beside {}",
                    ledger.path().display()
                ),
                "files of more than 64 MiB are not kept, and a copied ledger needs the folder `.sources` beside it",
            ));
        };
        let place = inside(Path::new(file));
        write(&into.join(&place), &contents)?;
        places.insert(file.as_str(), place.display().to_string());
    }
    let words = judgement.command.iter().map(|word| renamed(word, &places));
    let command = [vec!["gauntlet".to_owned()], words.collect()].concat();
    let [folder, command] = [vec![into.display().to_string()], command].map(|words| {
        // Only a null byte cannot be quoted, and no argument has one.
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
    });
    sink::line(format_args!("cd {folder} && {command}"))?;
    Ok(Exit::Done)
}

/// Where a file lies in the folder: under its own name, without what would lead out of it.
fn inside(file: &Path) -> PathBuf {
    let parts = file.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("up".into()),
        _ => None,
    });
    parts.collect()
}

/// A word of a command with the place of the file that it names, if it names one: alone, or before a colon.
fn renamed(word: &str, places: &BTreeMap<&str, String>) -> String {
    let (file, rest) = match places.get(word) {
        Some(_) => (word, ""),
        None => word.split_at(word.find(':').unwrap_or(word.len())),
    };
    let folder = || {
        // A folder that is a task, by a file of it.
        let file = Path::new(file);
        let is_inside = |source: &&str| !file.as_os_str().is_empty() && Path::new(source).starts_with(file);
        places
            .keys()
            .any(is_inside)
            .then(|| inside(file).display().to_string())
    };
    let place = places.get(file).cloned().or_else(folder);
    place.map_or_else(|| word.to_owned(), |place| place + rest)
}

fn write(path: &Path, contents: &[u8]) -> Result<(), CliError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, contents));
    written.map_err(|error| {
        CliError::of_place(
            &error,
            format!("{} cannot be written: {error}", path.display()),
            "give a folder that can be written",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_they_lie_in_the_folder_and_never_outside_it() {
        let sources = ["k.py", "../task/task.py", "/abs/lib.so"];
        let places: BTreeMap<&str, String> = sources
            .map(|file| (file, inside(Path::new(file)).display().to_string()))
            .into();
        for (word, there) in [
            ("k.py:fast", "k.py:fast"),
            ("../task/task.py", "up/task/task.py"),
            ("../task", "up/task"),
            ("/abs/lib.so:f", "abs/lib.so:f"),
            ("stages=2", "stages=2"),
            ("--task", "--task"),
            ("compare", "compare"),
        ] {
            assert_eq!(renamed(word, &places), there);
        }
    }
}
