//! The environment in which candidates run: worker processes and the files they exchange.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gauntlet_scratch::Scratch;
use gauntlet_stats::Arm;
use gauntlet_task::{Case, InputKind, Inputs, Output, Sizes};
use gauntlet_tensors::TensorSpec;
use gauntlet_worker::protocol::Description;
use gauntlet_worker::{Limits, Timeouts, WorkerCommand, WorkerError, WorkerProcess};
use tempfile::TempPath;

use crate::evidence::{Candidate, JudgeError};
use crate::runner::artefacts::{Build, Built};
use crate::runner::device_watch::{DeviceReading, DeviceWatch, QuickWatch};
use crate::runner::failure::ExaminationFailure;
use crate::runner::instruments::Instruments;
use crate::runner::operands::Readers;

/// Starts workers and manages the operand and result files, which are deleted when it is dropped.
///
/// Operands lie where every worker can read them. Each worker has its own folder, which no other worker can read;
/// results are moved out of it before they are checked.
pub struct Workshop {
    program: WorkerCommand,
    timeouts: Timeouts,
    limits: Limits,
    instruments: Option<Instruments>,
    device_watch: Option<QuickWatch>,
    folder: Scratch,
    /// The artefacts of the candidates that have been built, by side and candidate.
    artefacts: Mutex<BTreeMap<String, Option<Built>>>,
}

/// Folder of the operands.
const OPERANDS: &str = "operands";

/// Folder of the workers' folders.
const WORKERS: &str = "workers";

/// Allowance for a result file beyond the results themselves: names and sizes of parts, about seventy bytes each, and
/// anything else that a program adds.
fn most_header(outputs: &[TensorSpec]) -> u64 {
    (1 << 20) + 128 * outputs.len() as u64
}

impl Workshop {
    /// `program` is the command that serves the built-in executor.
    pub fn new(program: WorkerCommand, timeouts: Timeouts, limits: Limits) -> Result<Self, JudgeError> {
        let place = std::env::temp_dir();
        let failed = |source| JudgeError::Files {
            what: "the folder for operands cannot be made".to_owned(),
            place: place.display().to_string(),
            source,
        };
        let folder = Scratch::new().map_err(failed)?;
        for name in [OPERANDS, WORKERS] {
            std::fs::create_dir(folder.path().join(name)).map_err(failed)?;
        }
        Ok(Self {
            program,
            timeouts,
            limits,
            instruments: None,
            device_watch: None,
            folder,
            artefacts: Mutex::default(),
        })
    }

    /// Adds the tools that inspect what workers run.
    pub fn with_instruments(self, instruments: Instruments) -> Self {
        Self {
            instruments: Some(instruments),
            ..self
        }
    }

    /// Adds a watch over the device that workers compute on; none if there is nothing to watch it with.
    pub fn with_device_watch(self, watch: Option<Arc<dyn DeviceWatch>>) -> Self {
        Self {
            device_watch: watch.map(QuickWatch::new),
            ..self
        }
    }

    /// The state of the device now; none if nothing watches it, or if reading it takes too long.
    pub fn read_device(&self) -> Option<DeviceReading> {
        self.device_watch.as_ref()?.read()
    }

    /// Starts a worker for a side's candidate: its own program, or a worker of the built-in executor.
    ///
    /// # Errors
    /// If a candidate's own program does not start, the candidate has failed. A worker of the built-in executor has not
    /// received any candidate when it starts: if it does not start, no candidate can be judged, and the judge has
    /// failed.
    pub fn start(
        &self,
        arm: Arm,
        candidate: &Candidate,
    ) -> Result<(WorkerProcess, Description), ExaminationFailure> {
        match own_command(candidate) {
            Some(command) => self
                .start_command(&command, self.timeouts)
                .map_err(|error| ExaminationFailure::of(arm, error)),
            None => Ok(self.start_default().map_err(JudgeError::Executor)?),
        }
    }

    /// Starts a worker for a trial: like [`start`](Self::start), but it may read what the side's candidate made when it
    /// was [built](Self::build_once).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_trial(
        &self,
        arm: Arm,
        candidate: &Candidate,
    ) -> Result<(WorkerProcess, Description), ExaminationFailure> {
        let built = self.built();
        let artefacts = built.get(&key(arm, candidate)).and_then(Option::as_ref);
        let artefacts = artefacts.map(|built| built.artefacts.sealed());
        drop(built);
        match own_command(candidate) {
            Some(command) => self
                .start_command(&WorkerCommand { artefacts, ..command }, self.timeouts)
                .map_err(|error| ExaminationFailure::of(arm, error)),
            None => self.start(arm, candidate),
        }
    }

    /// Lets a candidate's own program fill a folder of its own with what it compiles, once, so that the processes of
    /// its trials need not compile. `use_it` makes a worker compile everything. The folder is given up if the program
    /// then fails or puts nothing there; trials then compile for themselves. The built-in executor needs no such folder.
    /// Whether the program can do with only reading the folder shows in its first trial, see
    /// [`give_up_build`](Self::give_up_build).
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn build_once(
        &self,
        arm: Arm,
        candidate: &Candidate,
        use_it: impl FnOnce(&mut WorkerProcess) -> Result<(), WorkerError>,
    ) -> Result<Build, JudgeError> {
        let Some(command) = own_command(candidate) else {
            return Ok(Build::NotNeeded);
        };
        if self.built().contains_key(&key(arm, candidate)) {
            return Ok(Build::NotNeeded);
        }
        let built = Built::prepare(&self.workers_folder())?;
        let command = WorkerCommand {
            artefacts: Some(built.artefacts.clone()),
            ..command
        };
        let started = self.start_command(&command, self.timeouts);
        let outcome = match started.and_then(|(mut worker, _)| use_it(&mut worker)) {
            Err(error) => Build::Failed(error),
            Ok(()) if !built.artefacts.hold_files() => Build::NotNeeded,
            Ok(()) => Build::Kept,
        };
        let kept = matches!(outcome, Build::Kept).then_some(built);
        self.built().insert(key(arm, candidate), kept);
        Ok(outcome)
    }

    /// Gives up what a candidate's program compiled, so that each of its trials compiles for itself. Returns whether
    /// anything was kept.
    pub fn give_up_build(&self, arm: Arm, candidate: &Candidate) -> bool {
        let kept = self.built().get_mut(&key(arm, candidate)).and_then(Option::take);
        kept.is_some()
    }

    fn built(&self) -> MutexGuard<'_, BTreeMap<String, Option<Built>>> {
        self.artefacts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker of the built-in executor.
    pub fn start_default(&self) -> Result<(WorkerProcess, Description), WorkerError> {
        self.start_command(&self.program, self.timeouts)
    }

    /// Starts a worker for a candidate, its own program or one of the built-in executor, under a tool that slows it
    /// down by that factor. A tool needs wider system access than workers are otherwise allowed, so nothing is timed
    /// under a tool.
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
        self.start_command(&command.under(tool, arguments), self.timeouts.longer(slowed))
    }

    /// Tools that inspect what workers run; none if there are no such tools.
    pub fn instruments(&self) -> Option<&Instruments> {
        self.instruments.as_ref()
    }

    fn start_command(
        &self,
        command: &WorkerCommand,
        timeouts: Timeouts,
    ) -> Result<(WorkerProcess, Description), WorkerError> {
        WorkerProcess::start_within(command, &self.workers_folder(), timeouts, self.limits)
    }

    /// Refuses operands that this machine cannot hold: a memory that runs out ends the whole process.
    fn check_room(&self, case: &Case, kind: InputKind) -> Result<(), JudgeError> {
        let needed = case.sizes.host_bytes(kind);
        if needed <= self.limits.memory {
            return Ok(());
        }
        let gibibytes = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
        Err(JudgeError::Inputs(format!(
            "the operands and results of the case {} need {:.1} GiB of memory while they are made, and {:.1} GiB may be used on \
             this machine; make the case smaller, or use a machine with more memory",
            case.name,
            gibibytes(needed),
            gibibytes(self.limits.memory)
        )))
    }

    /// Makes operands, or takes the case's own data, and writes them where their readers can read them.
    pub fn write_inputs(
        &self,
        case: &Case,
        kind: InputKind,
        seed: u64,
        readers: Readers,
    ) -> Result<(Box<dyn Inputs>, PathBuf), JudgeError> {
        self.check_room(case, kind)?;
        let inputs = match &case.data {
            Some(data) => case.sizes.load(data).map_err(JudgeError::Inputs)?,
            None => case.sizes.generate(kind, seed).map_err(JudgeError::Inputs)?,
        };
        // The kind and the seed are left out: a worker that knew them could regenerate the operands, and further ones,
        // itself.
        let name = format!("{:016x}.inputs", rand::random::<u64>());
        let folder = match readers {
            Readers::Workers => self.folder.path().join(OPERANDS),
            // A worker reads nothing in this folder but its own folder.
            Readers::Coordinator => self.workers_folder(),
        };
        let path = folder.join(name);
        inputs.save(&path)?;
        Ok((inputs, path))
    }

    /// Moves a file of operands where all workers can read it; returns its new path.
    pub fn open_to_workers(&self, path: &Path) -> Result<PathBuf, JudgeError> {
        let name = path.file_name().unwrap_or_default();
        let opened = self.folder.path().join(OPERANDS).join(name);
        std::fs::rename(path, &opened).map_err(|source| JudgeError::Files {
            what: "operands cannot be moved".to_owned(),
            place: opened.display().to_string(),
            source,
        })?;
        Ok(opened)
    }

    fn workers_folder(&self) -> PathBuf {
        self.folder.path().join(WORKERS)
    }

    /// Reads a result that a worker wrote, and removes the file.
    ///
    /// # Errors
    /// If the path is not a regular file (for example a link to another worker's result), is too long for a result, or
    /// does not fit the problem.
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

    /// Moves a file that a worker wrote out of its reach; none if it is not a regular file or is longer than `most`
    /// bytes.
    pub fn take(&self, path: &Path, most: u64) -> Result<Option<TempPath>, JudgeError> {
        // Moved out of the worker's reach first, so that the checked file is the file that is read.
        let workers_folder = self.workers_folder();
        let taken = tempfile::Builder::new()
            .tempfile_in(&workers_folder)
            .map_err(|source| JudgeError::Files {
                what: "a result cannot be taken".to_owned(),
                place: workers_folder.display().to_string(),
                source,
            })?
            .into_temp_path();
        let found = std::fs::rename(path, &taken).and_then(|()| std::fs::symlink_metadata(&taken));
        let is_whole = found.is_ok_and(|found| found.is_file() && found.len() <= most);
        Ok(is_whole.then_some(taken))
    }
}

/// Tells the sides and their candidates apart: no two share artefacts, even if they are the same program.
fn key(arm: Arm, candidate: &Candidate) -> String {
    format!("{arm:?} {:?} {:?}", candidate.name, candidate.command)
}

/// The command of a candidate that brings its own program.
fn own_command(candidate: &Candidate) -> Option<WorkerCommand> {
    let [program, arguments @ ..] = candidate.command.as_deref()? else {
        return None;
    };
    let arguments = arguments.iter().map(|argument| argument.clone().into_os_string());
    Some(WorkerCommand::new(program.clone(), arguments))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_file_of_the_right_length_is_taken_for_a_result() {
        let nobody = WorkerCommand::new("", []);
        let workshop = Workshop::new(nobody, Timeouts::default(), Limits::default()).unwrap();
        let sizes = gauntlet_families::open(&serde_json::json!({
            "family": "grouped-gemm", "groups": [{ "m": 2, "n": 16, "k": 16 }]
        }))
        .unwrap();
        let honest = workshop.workers_folder().join("honest");
        Output::poisoned(&sizes.outputs()).save(&honest).unwrap();
        let written = workshop.workers_folder().join("output");
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
}
