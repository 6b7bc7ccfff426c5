//! The reference process of a task: started when it is first asked, one JSON line for each request and answer. It is confined
//! like a worker, since a baseline's file may run in it, and gets files in memory by their descriptors.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gauntlet_host_python::interpreter;
use gauntlet_scratch::Scratch;
use gauntlet_worker::{Confined, Limits, Silence, WorkerCommand, send};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::TaskError;
use crate::memory::MemoryFile;

/// The program and its modules, written to a folder of the process.
const FILES: [(&str, &str); 10] = [
    (
        "reference.py",
        include_str!("../../../../python/gauntlet/_host/reference.py"),
    ),
    (
        "tensors.py",
        include_str!("../../../../python/gauntlet/_host/tensors.py"),
    ),
    (
        "own_modules.py",
        include_str!("../../../../python/gauntlet/_host/own_modules.py"),
    ),
    (
        "task_case.py",
        include_str!("../../../../python/gauntlet/_host/task_case.py"),
    ),
    (
        "task_faults.py",
        include_str!("../../../../python/gauntlet/_host/task_faults.py"),
    ),
    (
        "task_file.py",
        include_str!("../../../../python/gauntlet/_host/task_file.py"),
    ),
    (
        "task_gpu_mode.py",
        include_str!("../../../../python/gauntlet/_host/task_gpu_mode.py"),
    ),
    (
        "task_kernel_bench.py",
        include_str!("../../../../python/gauntlet/_host/task_kernel_bench.py"),
    ),
    (
        "task_library.py",
        include_str!("../../../../python/gauntlet/_host/task_library.py"),
    ),
    (
        "task_definition.py",
        include_str!("../../../../python/gauntlet/_host/task_definition.py"),
    ),
];

/// The program, in the folder in which it starts.
const PROGRAM: &str = "reference.py";

/// Lines of standard error that a message repeats.
const STDERR_LINES: usize = 20;

/// A reference process, running or not yet started.
#[derive(Debug)]
pub(crate) struct Reference {
    task: PathBuf,
    /// The request that opens the task, sent first to every new process.
    open: Value,
    timeout: Duration,
    folder: Scratch,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    process: Confined,
    requests: UnixStream,
    last: u64,
}

/// A request's files in memory by the names of its fields.
pub(crate) type Given<'f> = &'f [(&'static str, &'f MemoryFile)];

impl Reference {
    /// The process for a task that `open` opens; nothing starts yet.
    pub(crate) fn new(task: &Path, open: Value, timeout: Duration) -> Result<Self, TaskError> {
        let cannot_write = |error: std::io::Error| TaskError::of_temporary_files(&error);
        let folder = Scratch::new();
        Ok(Self {
            task: task.to_owned(),
            open,
            timeout,
            folder: folder.map_err(cannot_write)?,
            running: Mutex::new(None),
        })
    }

    /// The file or folder of the task.
    pub(crate) fn task(&self) -> &Path {
        &self.task
    }

    /// What the task answers to being opened.
    pub(crate) fn opened<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        self.locked(|running| self.exchange(running, &self.open, &[], self.timeout))
    }

    /// Sends a request with files and waits for its answer.
    pub(crate) fn ask<T: DeserializeOwned>(&self, request: &Value, files: Given) -> Result<T, TaskError> {
        self.ask_within(self.timeout, request, files)
    }

    /// The same, for no longer than this.
    pub(crate) fn ask_within<T: DeserializeOwned>(
        &self,
        most: Duration,
        request: &Value,
        files: Given,
    ) -> Result<T, TaskError> {
        self.locked(|running| {
            if running.is_none() {
                self.exchange::<Value>(running, &self.open, &[], self.timeout)?;
            }
            self.exchange(running, request, files, most.min(self.timeout))
        })
    }

    fn locked<T>(
        &self,
        work: impl FnOnce(&mut Option<Running>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        // A panic elsewhere leaves the process as it is: each request has its own number.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut running)
    }

    fn exchange<T: DeserializeOwned>(
        &self,
        running: &mut Option<Running>,
        request: &Value,
        files: Given,
        timeout: Duration,
    ) -> Result<T, TaskError> {
        let process = match running {
            Some(process) => process,
            None => running.insert(self.start()?),
        };
        let call = request["call"].as_str().unwrap_or_default().to_owned();
        match process.exchange(request, files, timeout) {
            Ok(answer) => self.read(answer),
            Err(failure) => {
                // It is in an unknown condition; the next request starts another.
                let said = running
                    .take()
                    .map(|running| running.process.end())
                    .unwrap_or_default();
                Err(self.told(&failure, &call, &said, timeout))
            }
        }
    }

    fn start(&self) -> Result<Running, TaskError> {
        let python = interpreter();
        let arguments = ["-u".into(), PROGRAM.into(), self.task.clone().into()];
        let command = WorkerCommand::new(&python, arguments);
        // Results may be larger than a file of a worker.
        let limits = Limits {
            file: u64::MAX,
            ..Limits::default()
        };
        let start = || -> io::Result<Running> {
            let (requests, stdin) = UnixStream::pair()?;
            requests.set_write_timeout(Some(self.timeout))?;
            let fill = |folder: &Path| {
                FILES
                    .iter()
                    .try_for_each(|(name, text)| fs::write(folder.join(name), text))
            };
            let process = Confined::start(&command, self.folder.path(), fill, OwnedFd::from(stdin), limits)?;
            Ok(Running {
                process,
                requests,
                last: 0,
            })
        };
        start().map_err(|reason| {
            TaskError::new(
                format!("the Python {} cannot be started: {reason}", python.display()),
                "install Python 3.9 or later, or name an interpreter by GAUNTLET_PYTHON",
            )
        })
    }

    fn read<T: DeserializeOwned>(&self, mut answer: Value) -> Result<T, TaskError> {
        if let Some(error) = answer.get("error") {
            let text = |key: &str| error[key].as_str().map(str::to_owned);
            return Err(TaskError {
                is_of_the_machine: false,
                file: text("file").map(PathBuf::from),
                line: error["line"].as_u64().and_then(|line| usize::try_from(line).ok()),
                message: text("message").unwrap_or_else(|| error.to_string()),
                remedy: text("remedy").unwrap_or_default(),
            });
        }
        serde_json::from_value(answer["answer"].take()).map_err(|error| {
            TaskError::new(
                format!("the reference process answered in another form: {error}"),
                "this is an error of gauntlet; report it with the task",
            )
        })
    }

    fn told(&self, failure: &Silence, call: &str, said: &str, timeout: Duration) -> TaskError {
        let message = match failure {
            Silence::Late => format!(
                "the reference process did not answer `{call}` within {} s",
                timeout.as_secs()
            ),
            Silence::Gone => format!("the reference process ended during `{call}`"),
            Silence::OverLimit(what) => {
                format!("the reference process took more than it may during `{call}` ({what})")
            }
            Silence::Garbage(line) => format!("the reference process wrote no answer but `{line}`"),
        };
        let lines: Vec<_> = said.lines().collect();
        let said = match &lines[lines.len().saturating_sub(STDERR_LINES)..] {
            [] => String::new(),
            last => format!("; its last words:\n{}", last.join("\n")),
        };
        let remedy = match failure {
            Silence::Late => {
                "make the case smaller or the reference faster, or allow more by GAUNTLET_REFERENCE_TIMEOUT (seconds)"
            }
            Silence::OverLimit(_) => "make the case smaller, or let the task take less",
            Silence::Gone | Silence::Garbage(_) => "correct the task: its own code ended the process",
        };
        TaskError::new(message + &said, remedy).in_file(&self.task)
    }
}

impl Running {
    fn exchange(&mut self, request: &Value, files: Given, timeout: Duration) -> Result<Value, Silence> {
        self.last += 1;
        let mut numbered = request.clone();
        numbered["id"] = json!(self.last);
        numbered["files"] = files.iter().map(|(name, _)| *name).collect();
        let descriptors: Vec<_> = files.iter().map(|(_, file)| file.descriptor()).collect();
        let line = format!("{numbered}\n");
        send(&self.requests, line.as_bytes(), &descriptors).map_err(|_| Silence::Gone)?;
        let line = self.process.line(timeout)?;
        match serde_json::from_str::<Value>(&line) {
            Ok(answer) if answer["id"] == json!(self.last) => Ok(answer),
            _ => Err(Silence::Garbage(line.chars().take(200).collect())),
        }
    }
}
