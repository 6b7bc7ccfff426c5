//! Where candidates are run: worker processes and the files they exchange.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use gauntlet_executor::protocol::Description;
use gauntlet_executor::{Patience, WorkerCommand, WorkerError, WorkerProcess};
use gauntlet_problem::{Case, InputKind, Inputs, Output, Problem};
use tempfile::TempDir;

use crate::candidate::Candidate;
use crate::error::LabError;

/// Starts workers and keeps the files of operands and results, which go when it is dropped.
pub struct Workshop {
    program: WorkerCommand,
    patience: Patience,
    folder: TempDir,
    /// Held as long as the folder is in use, so that one left behind by a killed program can be told and cleared.
    _lock: File,
}

/// What folders are called, before letters of their own.
const PREFIX: &str = "gauntlet-";

/// The file in a folder that its user holds locked.
const LOCK: &str = "lock";

impl Workshop {
    /// `program` is the command that serves the round's executor.
    pub fn new(program: WorkerCommand, patience: Patience) -> Result<Self, LabError> {
        let place = std::env::temp_dir();
        clear_abandoned(&place);
        let failed = |source| LabError::Files {
            what: "the folder for operands cannot be made".to_owned(),
            place: place.display().to_string(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&place)
            .map_err(failed)?;
        // Locked before it has the name that others look for.
        let fresh = folder.path().join("lock.new");
        let lock = File::create(&fresh).map_err(failed)?;
        lock.lock().map_err(failed)?;
        std::fs::rename(&fresh, folder.path().join(LOCK)).map_err(failed)?;
        Ok(Self {
            program,
            patience,
            folder,
            _lock: lock,
        })
    }

    /// Starts a worker for a candidate: its own program, or one of the round's executor.
    pub fn start(&self, candidate: &Candidate) -> Result<(WorkerProcess, Description), WorkerError> {
        match candidate.command.as_deref() {
            Some([program, arguments @ ..]) => self.start_command(&WorkerCommand {
                program: program.clone(),
                arguments: arguments
                    .iter()
                    .map(|argument| argument.clone().into_os_string())
                    .collect(),
                environment: BTreeMap::new(),
            }),
            _ => self.start_default(),
        }
    }

    /// Starts a worker of the round's executor.
    pub fn start_default(&self) -> Result<(WorkerProcess, Description), WorkerError> {
        self.start_command(&self.program)
    }

    fn start_command(&self, command: &WorkerCommand) -> Result<(WorkerProcess, Description), WorkerError> {
        WorkerProcess::start(command, self.folder.path(), self.patience)
    }

    /// Makes operands, or takes those that the case names, and writes them where a worker can read them.
    pub fn write_inputs(
        &self,
        case: &Case,
        kind: InputKind,
        seed: u64,
    ) -> Result<(Inputs, PathBuf), LabError> {
        let inputs = match &case.data {
            Some(data) => Inputs::load(data, &case.problem)?,
            None => Inputs::generate(&case.problem, kind, seed),
        };
        // Neither kind nor seed: a worker that knew them could make the operands, and more, by itself.
        let path = self.path(&format!("{:016x}.inputs", rand::random::<u64>()));
        inputs.save(&path)?;
        Ok((inputs, path))
    }

    /// A path in the workshop's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads a result that a worker wrote, and takes the file away.
    pub fn take_output(&self, path: &Path, problem: &Problem) -> Result<Output, LabError> {
        let output = Output::load(path, problem);
        // A file left behind only takes up room until the workshop closes.
        let _removed = std::fs::remove_file(path);
        Ok(output?)
    }
}

/// Removes folders that programs left behind when they were killed: operands may be gigabytes.
fn clear_abandoned(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // A folder without a lock file is being made at this moment, or is none of ours.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            // Another program may be clearing it too; whoever comes second finds nothing.
            let _removed = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_folders_are_cleared() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            folder
        };
        let (used, abandoned, new) = (
            folder("gauntlet-used"),
            folder("gauntlet-abandoned"),
            folder("gauntlet-new"),
        );
        let stranger = folder("stranger");
        File::create(abandoned.join(LOCK)).unwrap();
        File::create(stranger.join(LOCK)).unwrap();
        let held = File::create(used.join(LOCK)).unwrap();
        held.lock().unwrap();
        clear_abandoned(place.path());
        assert!(!abandoned.exists());
        assert!(used.exists() && new.exists() && stranger.exists());
    }
}
