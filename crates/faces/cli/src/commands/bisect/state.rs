//! What is kept of a bisection until it ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_history::git::Revision;
use gauntlet_history::recalled::Answered;
use gauntlet_tournament::digest_of;
use serde::{Deserialize, Serialize};

use crate::arguments::Bisect;
use crate::commands::more::changed_surroundings;
use crate::commands::run::{environment, version};
use crate::error::{CliError, say_line};

/// What answers depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The question in words: commits, kernel, build command, and how is measured.
    asked: String,
    version: String,
    environment: BTreeMap<String, String>,
}

impl Inputs {
    /// Those of a bisection.
    pub fn of(arguments: &Bisect, commits: &[Revision]) -> Self {
        let row: Vec<&str> = commits.iter().map(|one| one.id.as_str()).collect();
        let task = arguments.setup.task.as_ref().map(PathBuf::from);
        let files = task.map_or_else(Vec::new, |task| gauntlet_entrants::task_files(&task));
        Self {
            asked: format!(
                "{row:?} {} {:?} {} {:?} {:?}",
                arguments.kernel,
                arguments.build,
                arguments.least,
                arguments.setup,
                gauntlet_entrants::digests_of(files)
            ),
            version: version(),
            environment: environment(),
        }
    }
}

/// The folder of a bisection, with its worktrees and its answers.
pub struct State {
    folder: PathBuf,
}

/// The file with the answers.
#[derive(Serialize, Deserialize)]
struct Kept {
    inputs: Inputs,
    answers: Vec<Answered>,
}

impl State {
    /// The folder of these inputs, beside a ledger: `bisect-` and the beginning of a digest.
    pub fn beside(ledger: &Path, inputs: &Inputs) -> Result<Self, CliError> {
        let parent = ledger.parent().filter(|parent| !parent.as_os_str().is_empty());
        let digest = digest_of(&[&inputs.asked]);
        let folder = parent
            .unwrap_or(Path::new("."))
            .join(format!("bisect-{}", digest.get(..12).unwrap_or(&digest)));
        let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
        let folder = made.map_err(|error| {
            CliError::of_place(
                &error,
                format!("{} cannot be made: {error}", folder.display()),
                "give a ledger in a folder that can be written, with --ledger: worktrees are made beside it",
            )
        })?;
        Ok(Self { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file with the answers.
    pub fn file(&self) -> PathBuf {
        self.folder.join("answers.json")
    }

    /// The answers of the same bisection on the same machine that was interrupted; none if there was none.
    pub fn answers(&self, inputs: &Inputs) -> Result<Vec<Answered>, CliError> {
        let file = self.file();
        let Ok(text) = fs::read(&file) else {
            say_line("note: no bisection of this kind was interrupted; a new one begins");
            return Ok(Vec::new());
        };
        let kept: Kept = serde_json::from_slice(&text).map_err(|error| {
            CliError::bad_input(
                format!("{} is damaged: {error}", file.display()),
                "remove it, or leave --resume out: the bisection begins anew",
            )
        })?;
        let mut changes = changed_surroundings(&kept.inputs.environment, &inputs.environment);
        if kept.inputs.version != inputs.version {
            changes.push("Gauntlet is another version".to_owned());
        }
        if !changes.is_empty() {
            say_line(format_args!(
                "note: what was interrupted was measured under other conditions ({}); a new bisection begins",
                changes.join("; ")
            ));
            return Ok(Vec::new());
        }
        say_line(format_args!("Going on after {} answers.", kept.answers.len()));
        Ok(kept.answers)
    }

    /// Keeps the answers so far.
    pub fn keep(&self, inputs: &Inputs, answers: &[Answered]) -> Result<(), CliError> {
        let kept = Kept {
            inputs: inputs.clone(),
            answers: answers.to_vec(),
        };
        let (file, draft) = (self.file(), self.folder.join("answers.draft"));
        let text = serde_json::to_vec(&kept).map_err(|error| CliError::broken(error.to_string()))?;
        let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &file));
        written.map_err(|error| {
            CliError::broken(format!("{} cannot be written: {error}", file.display()))
                .with_remedy("see that its disk has room; the same command with --resume goes on")
        })
    }

    /// Removes the folder: the bisection has ended.
    pub fn remove(&self) {
        // If the folder cannot be removed, it only takes some room: no later bisection reads it.
        let _gone = fs::remove_dir_all(&self.folder);
    }
}
