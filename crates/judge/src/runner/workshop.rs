//! Where candidates are run: worker processes and the files they exchange.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use gauntlet_formats::TensorSpec;
use gauntlet_stats::Arm;
use gauntlet_task::{Case, InputKind, Inputs, Output, Sizes};
use gauntlet_worker::protocol::Description;
use gauntlet_worker::{Limits, Patience, WorkerCommand, WorkerError, WorkerProcess};
use tempfile::{TempDir, TempPath};

use crate::evidence::{Candidate, JudgeError};
use crate::runner::failure::ExaminationFailure;
use crate::runner::instruments::Instruments;

/// Starts workers and keeps the files of operands and results, which go when it is dropped.
///
/// Operands lie where every worker may read them; each worker has a folder of its own, which no other worker
/// may read, and results are moved out of it before they are looked at.
pub struct Workshop {
    program: WorkerCommand,
    patience: Patience,
    limits: Limits,
    instruments: Option<Instruments>,
    folder: TempDir,
    /// Held as long as the folder is in use, so that one left behind by a killed program can be told and cleared.
    _lock: File,
}

/// What folders are called, before letters of their own.
const PREFIX: &str = "gauntlet-";

/// The file in a folder that its user holds locked.
const LOCK: &str = "lock";

/// Holds the operands.
const OPERANDS: &str = "operands";

/// Holds the workers' folders.
const YARD: &str = "yard";

/// What a file of results may take beyond the results themselves: for the names and sizes of parts, some seventy bytes each, and
/// whatever a program says besides.
fn most_header(outputs: &[TensorSpec]) -> u64 {
    (1 << 20) + 128 * outputs.len() as u64
}

impl Workshop {
    /// `program` is the command that serves the built-in executor.
    pub fn new(program: WorkerCommand, patience: Patience, limits: Limits) -> Result<Self, JudgeError> {
        let place = std::env::temp_dir();
        clear_abandoned(&place);
        let failed = |source| JudgeError::Files {
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
        for name in [OPERANDS, YARD] {
            std::fs::create_dir(folder.path().join(name)).map_err(failed)?;
        }
        Ok(Self {
            program,
            patience,
            limits,
            instruments: None,
            folder,
            _lock: lock,
        })
    }

    /// With tools that look into what workers run.
    pub fn with_instruments(self, instruments: Instruments) -> Self {
        Self {
            instruments: Some(instruments),
            ..self
        }
    }

    /// Starts a worker for the candidate of a side: its own program, or a worker of the built-in executor.
    ///
    /// # Errors
    /// A candidate's own program that does not start is the candidate's failure. A worker of the built-in executor has not
    /// been told of any candidate when it starts: if it does not start, no candidate can be judged, and the judge has failed.
    pub fn start(
        &self,
        arm: Arm,
        candidate: &Candidate,
    ) -> Result<(WorkerProcess, Description), ExaminationFailure> {
        match own_command(candidate) {
            Some(command) => self
                .start_command(&command, self.patience)
                .map_err(|error| ExaminationFailure::of(arm, error)),
            None => Ok(self.start_default().map_err(JudgeError::Executor)?),
        }
    }

    /// Starts a worker of the built-in executor.
    pub fn start_default(&self) -> Result<(WorkerProcess, Description), WorkerError> {
        self.start_command(&self.program, self.patience)
    }

    /// Starts a worker for a candidate, its own program or one of the built-in executor, run by a tool that slows it down by
    /// that factor. A tool needs more of the system than workers may otherwise use, so nothing is timed under one.
    ///
    /// # Errors
    /// If the tool or the worker does not start.
    pub fn start_under(
        &self,
        candidate: &Candidate,
        tool: &Path,
        arguments: &[&str],
        slowed: u32,
    ) -> Result<(WorkerProcess, Description), WorkerError> {
        let arguments = arguments.iter().map(OsString::from);
        let command = own_command(candidate).unwrap_or_else(|| self.program.clone());
        self.start_command(&command.under(tool, arguments), self.patience.longer(slowed))
    }

    /// Tools that look into what workers run; none where there are no such.
    pub fn instruments(&self) -> Option<&Instruments> {
        self.instruments.as_ref()
    }

    fn start_command(
        &self,
        command: &WorkerCommand,
        patience: Patience,
    ) -> Result<(WorkerProcess, Description), WorkerError> {
        WorkerProcess::start_within(command, &self.yard(), patience, self.limits)
    }

    /// Makes operands, or takes those that the case names, and writes them where a worker can read them.
    pub fn write_inputs(
        &self,
        case: &Case,
        kind: InputKind,
        seed: u64,
    ) -> Result<(Box<dyn Inputs>, PathBuf), JudgeError> {
        let inputs = match &case.data {
            Some(data) => case.sizes.load(data).map_err(JudgeError::Inputs)?,
            None => case.sizes.generate(kind, seed),
        };
        // Neither kind nor seed: a worker that knew them could make the operands, and more, by itself.
        let name = format!("{:016x}.inputs", rand::random::<u64>());
        let path = self.folder.path().join(OPERANDS).join(name);
        inputs.save(&path)?;
        Ok((inputs, path))
    }

    fn yard(&self) -> PathBuf {
        self.folder.path().join(YARD)
    }

    /// Reads a result that a worker wrote, and takes the file away.
    ///
    /// # Errors
    /// If what is there is no file, such as a link to a result of somebody else, is too long to be a result, or does
    /// not fit the problem.
    pub fn take_output(&self, path: &Path, sizes: &Sizes) -> Result<Output, JudgeError> {
        let outputs = sizes.outputs();
        let bytes = outputs.iter().map(TensorSpec::bytes).sum();
        let no_result = || JudgeError::NoResult {
            path: path.to_owned(),
            bytes,
        };
        let taken = self.take(path, bytes as u64 + most_header(&outputs))?;
        Ok(Output::load(&taken.ok_or_else(no_result)?, &outputs)?)
    }

    /// Takes a file that a worker wrote out of its reach; none if it is no file or longer than `most` bytes.
    pub fn take(&self, path: &Path, most: u64) -> Result<Option<TempPath>, JudgeError> {
        // Moved out of the worker's reach first, so that what is looked at is what is read.
        let yard = self.yard();
        let taken = tempfile::Builder::new()
            .tempfile_in(&yard)
            .map_err(|source| JudgeError::Files {
                what: "a result cannot be taken".to_owned(),
                place: yard.display().to_string(),
                source,
            })?
            .into_temp_path();
        let found = std::fs::rename(path, &taken).and_then(|()| std::fs::symlink_metadata(&taken));
        let is_whole = found.is_ok_and(|found| found.is_file() && found.len() <= most);
        Ok(is_whole.then_some(taken))
    }
}

/// The command of a candidate that is a program of its own.
fn own_command(candidate: &Candidate) -> Option<WorkerCommand> {
    let [program, arguments @ ..] = candidate.command.as_deref()? else {
        return None;
    };
    let arguments = arguments.iter().map(|argument| argument.clone().into_os_string());
    Some(WorkerCommand::new(program.clone(), arguments))
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
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_file_of_the_right_length_is_taken_for_a_result() {
        let nobody = WorkerCommand::new("", []);
        let workshop = Workshop::new(nobody, Patience::default(), Limits::default()).unwrap();
        let sizes = gauntlet_families::open(&serde_json::json!({
            "family": "grouped-gemm", "groups": [{ "m": 2, "n": 16, "k": 16 }]
        }))
        .unwrap();
        let honest = workshop.yard().join("honest");
        Output::poisoned(&sizes.outputs()).save(&honest).unwrap();
        let written = workshop.yard().join("output");
        let take = || workshop.take_output(&written, &sizes);

        std::fs::copy(&honest, &written).unwrap();
        assert_eq!(take().unwrap().elements(), 32);
        assert!(!written.exists());
        assert!(
            matches!(take(), Err(JudgeError::NoResult { .. })),
            "there is none"
        );

        symlink(&honest, &written).unwrap();
        assert!(
            matches!(take(), Err(JudgeError::NoResult { .. })),
            "somebody else's"
        );

        let long = File::create(&written).unwrap();
        long.set_len(1 << 32).unwrap();
        assert!(
            matches!(take(), Err(JudgeError::NoResult { .. })),
            "too long to read"
        );

        std::fs::create_dir(&written).unwrap();
        assert!(matches!(take(), Err(JudgeError::NoResult { .. })), "a folder");
    }

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
