//! Checkouts of commits beside the user's own, which stays as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::git::{Checkout, GitError, git};

/// A checkout of its own, in a folder of its own.
#[derive(Debug)]
pub struct Worktree {
    of: PathBuf,
    folder: PathBuf,
    built: Option<Result<String, BuildError>>,
}

/// A commit that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The command does not start.
    #[error("the build command does not start: {0}")]
    Missing(String),
    /// It fails.
    #[error("it does not build: {0}")]
    Failed(String),
}

impl Worktree {
    /// A worktree in this folder; one that an interrupted command left there is used again.
    ///
    /// # Errors
    /// If git refuses.
    pub fn at(checkout: &Checkout, folder: &Path) -> Result<Self, GitError> {
        let of = checkout.root().to_owned();
        let is_there = Checkout::around(folder).is_ok_and(|there| there.root() == folder);
        if !is_there {
            git(&of, &["worktree", "prune"])?;
            let words = ["worktree", "add", "--force", "--detach", "--no-checkout"];
            let folder = folder.to_string_lossy();
            git(&of, &[&words[..], &[&*folder]].concat())?;
        }
        Ok(Self {
            of,
            folder: folder.to_owned(),
            built: None,
        })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks a commit out, without anything that was left of another one, and builds it with a command of the shell; nothing is done if
    /// it is what lies there.
    ///
    /// # Errors
    /// If git refuses. The inner error says why it does not build.
    pub fn hold(&mut self, commit: &str, build: Option<&str>) -> Result<Result<(), BuildError>, GitError> {
        let is_held = matches!(&self.built, Some(Ok(held)) if held == commit);
        if !is_held {
            self.built = None;
            git(
                &self.folder,
                &["checkout", "--quiet", "--force", "--detach", commit],
            )?;
            git(&self.folder, &["clean", "--quiet", "-ffdx"])?;
            let built = build.map_or(Ok(()), |command| self.build(command));
            self.built = Some(built.map(|()| commit.to_owned()));
        }
        Ok(match &self.built {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(()),
        })
    }

    fn build(&self, command: &str) -> Result<(), BuildError> {
        let ran = Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| BuildError::Missing(error.to_string()))?;
        if ran.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let first = said.lines().find(|line| !line.trim().is_empty());
        Err(BuildError::Failed(match first {
            Some(line) => format!("{}: {}", ran.status, line.trim()),
            None => ran.status.to_string(),
        }))
    }

    /// Removes it with its folder.
    ///
    /// # Errors
    /// If git refuses.
    pub fn remove(self) -> Result<(), GitError> {
        let folder = self.folder.to_string_lossy();
        git(&self.of, &["worktree", "remove", "--force", &folder])?;
        // An empty folder is no loss.
        let _gone = fs::remove_dir(&self.folder);
        Ok(())
    }
}
