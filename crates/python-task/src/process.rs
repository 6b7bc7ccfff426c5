//! The reference process of a task: trusted, started when it is first asked, one JSON line for each request and answer.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::TaskError;
use crate::interpreter::interpreter;

/// The program and its modules, written to a folder of the process.
const FILES: [(&str, &str); 9] = [
    (
        "reference.py",
        include_str!("../../../python/gauntlet/_host/reference.py"),
    ),
    (
        "tensors.py",
        include_str!("../../../python/gauntlet/_host/tensors.py"),
    ),
    (
        "own_modules.py",
        include_str!("../../../python/gauntlet/_host/own_modules.py"),
    ),
    (
        "task_case.py",
        include_str!("../../../python/gauntlet/_host/task_case.py"),
    ),
    (
        "task_faults.py",
        include_str!("../../../python/gauntlet/_host/task_faults.py"),
    ),
    (
        "task_file.py",
        include_str!("../../../python/gauntlet/_host/task_file.py"),
    ),
    (
        "task_gpu_mode.py",
        include_str!("../../../python/gauntlet/_host/task_gpu_mode.py"),
    ),
    (
        "task_kernel_bench.py",
        include_str!("../../../python/gauntlet/_host/task_kernel_bench.py"),
    ),
    (
        "task_definition.py",
        include_str!("../../../python/gauntlet/_host/task_definition.py"),
    ),
];

/// Lines of standard error that a message repeats.
const STDERR_LINES: usize = 20;

/// A reference process, running or not yet started.
#[derive(Debug)]
pub(crate) struct Reference {
    task: PathBuf,
    /// The request that opens the task, sent first to every new process.
    open: Value,
    timeout: Duration,
    folder: TempDir,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    last: u64,
}

impl Reference {
    /// The process for a task that `open` opens; nothing starts yet.
    pub(crate) fn new(task: &Path, open: Value, timeout: Duration) -> Result<Self, TaskError> {
        let folder = tempfile::Builder::new().prefix("gauntlet-reference-").tempdir();
        let cannot_write = |error| TaskError::of_temporary_files(&error);
        let folder = folder.map_err(cannot_write)?;
        for (name, text) in FILES {
            fs::write(folder.path().join(name), text).map_err(cannot_write)?;
        }
        Ok(Self {
            task: task.to_owned(),
            open,
            timeout,
            folder,
            running: Mutex::new(None),
        })
    }

    /// What the task answers to being opened.
    pub(crate) fn opened<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        self.locked(|running| self.exchange(running, &self.open))
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask<T: DeserializeOwned>(&self, request: &Value) -> Result<T, TaskError> {
        self.locked(|running| {
            if running.is_none() {
                self.exchange::<Value>(running, &self.open)?;
            }
            self.exchange(running, request)
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
    ) -> Result<T, TaskError> {
        let process = match running {
            Some(process) => process,
            None => running.insert(self.start()?),
        };
        let call = request["call"].as_str().unwrap_or_default().to_owned();
        match process.exchange(request, self.timeout) {
            Ok(answer) => self.read(answer),
            Err(failure) => {
                // It is in an unknown condition; the next request starts another.
                let said = running.take().map(Running::end).unwrap_or_default();
                Err(self.told(&failure, &call, &said))
            }
        }
    }

    fn start(&self) -> Result<Running, TaskError> {
        let python = interpreter();
        let started = Command::new(&python)
            .arg("-u")
            .arg(self.folder.path().join("reference.py"))
            .arg(&self.task)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let cannot_start = |reason: String| {
            TaskError::new(
                format!("the Python {} cannot be started: {reason}", python.display()),
                "install Python 3.9 or later, or name an interpreter by GAUNTLET_PYTHON",
            )
        };
        let mut child = started.map_err(|error| cannot_start(error.to_string()))?;
        let (Some(requests), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(cannot_start("it has no pipes".to_owned()));
        };
        let (sender, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&tail);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == STDERR_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Ok(Running {
            child,
            requests,
            answers,
            stderr: tail,
            last: 0,
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

    fn told(&self, failure: &Failure, call: &str, said: &str) -> TaskError {
        let message = match failure {
            Failure::Silent => format!(
                "the reference process did not answer `{call}` within {} s",
                self.timeout.as_secs()
            ),
            Failure::Gone => format!("the reference process ended during `{call}`"),
            Failure::Garbage(line) => format!("the reference process wrote no answer but `{line}`"),
        };
        let said = if said.is_empty() {
            String::new()
        } else {
            format!("; its last words:\n{said}")
        };
        let remedy = match failure {
            Failure::Silent => {
                "make the case smaller or the reference faster, or allow more by GAUNTLET_REFERENCE_TIMEOUT (seconds)"
            }
            Failure::Gone | Failure::Garbage(_) => "correct the task: its own code ended the process",
        };
        TaskError::new(message + &said, remedy).in_file(&self.task)
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Failure {
    Silent,
    Gone,
    Garbage(String),
}

impl Running {
    fn exchange(&mut self, request: &Value, timeout: Duration) -> Result<Value, Failure> {
        self.last += 1;
        let mut numbered = request.clone();
        numbered["id"] = json!(self.last);
        let sent = writeln!(self.requests, "{numbered}").and_then(|()| self.requests.flush());
        sent.map_err(|_| Failure::Gone)?;
        let line = self.answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => Failure::Silent,
            RecvTimeoutError::Disconnected => Failure::Gone,
        })?;
        match serde_json::from_str::<Value>(&line) {
            Ok(answer) if answer["id"] == json!(self.last) => Ok(answer),
            _ => Err(Failure::Garbage(line.chars().take(200).collect())),
        }
    }

    /// Ends the process and returns the last lines of its standard error.
    fn end(mut self) -> String {
        self.kill();
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    fn kill(&mut self) {
        // A process that ended by itself can be neither killed nor waited for again.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
