//! What a candidate's own program compiles, kept from its build to its trials.

use std::path::Path;

use gauntlet_worker::{Artefacts, WorkerError};
use tempfile::TempDir;

use crate::evidence::JudgeError;

/// What became of building a candidate once.
#[derive(Debug)]
pub enum Build {
    /// Its trials may read what it made.
    Kept,
    /// It was built before, made nothing, or has no program of its own.
    NotNeeded,
    /// It failed.
    Failed(WorkerError),
    /// It works when it may write to the folder, and fails when it may only read it.
    NeedsToWrite(WorkerError),
}

impl Build {
    /// What the user should know, if anything. A program that fails will fail in its trials too, where it is reported.
    pub fn notice(&self, side: &str) -> Option<String> {
        match self {
            Self::NeedsToWrite(error) => Some(format!(
                "{side} compiles in every process: it does not work when it may only read what it compiled before \
                 ({error})"
            )),
            Self::Kept | Self::NotNeeded | Self::Failed(_) => None,
        }
    }
}

/// A candidate's artefacts and their folder, which is removed when this is dropped.
#[derive(Debug)]
pub struct Built {
    /// As the build may use them.
    pub artefacts: Artefacts,
    _folder: TempDir,
}

impl Built {
    /// A new folder among the workers' folders, where only workers that are given it can read it.
    pub fn prepare(workers_folder: &Path) -> Result<Self, JudgeError> {
        let failed = |source| JudgeError::Files {
            what: "the folder for artefacts cannot be made".to_owned(),
            place: workers_folder.display().to_string(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix("artefacts-")
            .tempdir_in(workers_folder)
            .map_err(failed)?;
        let artefacts = Artefacts::prepare(folder.path()).map_err(failed)?;
        Ok(Self {
            artefacts,
            _folder: folder,
        })
    }
}
