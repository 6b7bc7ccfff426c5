//! The source of a round, and the changes to it that stand in files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_entrants::{FileError, Source, task_files};
use gauntlet_judge::{KernelForm, KernelText, KernelTextError};

use super::RoundFile;
use crate::pitch::Pitch;
use crate::source::{Edit, Protected, SourceChange, Tree};

/// The source that pitches change.
pub fn load_tree(source: &Source<RoundFile>) -> Result<Option<Tree>, FileError> {
    let Some(named) = &source.value.source else {
        return Ok(None);
    };
    let folder = source.resolve(&named.folder);
    let tree = Tree::read(&folder).map_err(|error| {
        source.error_at(
            "[source]",
            format!("the source {} cannot be read: {error}", folder.display()),
            "name a folder with the files of the kernel and nothing else",
        )
    })?;
    let text: KernelText = named.kernel.parse().map_err(|error: KernelTextError| {
        source.error_at(&named.kernel, error.to_string(), error.remedy())
    })?;
    if let Some(missing) = named.protected.iter().find(|path| !folder.join(path).exists()) {
        return Err(source.error_at(
            &missing.display().to_string(),
            format!("there is no {} in {}", missing.display(), folder.display()),
            "paths in `protected` are relative to the source's folder",
        ));
    }
    let made = !named.build.is_empty();
    if !matches!(text.form(), KernelForm::File(_)) {
        return Err(source.error_at(
            &named.kernel,
            format!("`{}` is no function of a file of the source", named.kernel),
            "name one as kernel.py:softmax, kernel.cu:softmax or libkernel.so:softmax",
        ));
    }
    if source.value.baseline.is_some() {
        return Err(source.error_at(
            "[baseline",
            "the round has both a [baseline] and a [source]",
            "leave [baseline] out: the source as it stands is the baseline",
        ));
    }
    let missing = text
        .files()
        .into_iter()
        .find(|file| !made && !folder.join(file).is_file());
    match missing {
        Some(file) => Err(source.error_at(
            &named.kernel,
            format!("there is no {} in {}", file.display(), folder.display()),
            "name a file of the source, or a `build` that makes it",
        )),
        None => Ok(Some(tree)),
    }
}

/// What pitches may not change of the source.
pub fn protected(source: &Source<RoundFile>) -> Protected {
    let Some(named) = &source.value.source else {
        return Protected::default();
    };
    let task = task_files(&source.resolve(Path::new(&source.value.suite)));
    Protected::new(&source.resolve(&named.folder), &named.protected, &task)
}

/// The changes of the pitches to the source.
pub fn load_changes(
    pitches: &[Source<Pitch>],
    has_source: bool,
) -> Result<BTreeMap<String, SourceChange>, FileError> {
    let mut changes = BTreeMap::new();
    for pitch in pitches.iter().filter(|pitch| pitch.value.changes_source()) {
        let at = |file: &Path, message: String, remedy: &str| {
            pitch.error_at(&file.display().to_string(), message, remedy)
        };
        let Pitch {
            name,
            patch,
            files,
            kernel,
            ..
        } = &pitch.value;
        if !has_source {
            let message = format!("the pitch `{name}` changes a source, and the round has none");
            return Err(at(
                Path::new(name),
                message,
                "add a [source] with its folder and kernel to the round",
            ));
        }
        let text = |file: &PathBuf| {
            std::fs::read_to_string(pitch.resolve(file)).map_err(|error| {
                let message = format!("{} cannot be read: {error}", file.display());
                at(
                    file,
                    message,
                    "check the path; paths inside a file are relative to that file",
                )
            })
        };
        let edit = match patch {
            Some(file) if files.is_empty() => Edit::Patch(text(file)?),
            Some(file) => {
                let message = format!("the pitch `{name}` has both `patch` and `files`");
                return Err(at(file, message, "leave one of them out"));
            }
            None => {
                let texts = files.iter().map(|(path, file)| Ok((path.clone(), text(file)?)));
                Edit::Files(texts.collect::<Result<_, FileError>>()?)
            }
        };
        let kernel = kernel.clone();
        changes.insert(name.clone(), SourceChange { edit, kernel });
    }
    Ok(changes)
}
