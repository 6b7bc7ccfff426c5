//! Where candidates are run: worker processes and the files they exchange.

use std::collections::BTreeMap;
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
}

impl Workshop {
    /// `program` is the command that serves the round's executor.
    pub fn new(program: WorkerCommand, patience: Patience) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new()
            .prefix("gauntlet-")
            .tempdir()
            .map_err(|source| LabError::Files {
                what: "the folder for operands cannot be made".to_owned(),
                place: std::env::temp_dir().display().to_string(),
                source,
            })?;
        Ok(Self {
            program,
            patience,
            folder,
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
        let path = self.path(&format!("{kind}-{seed:016x}.inputs"));
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
