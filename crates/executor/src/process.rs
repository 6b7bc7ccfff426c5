//! The coordinator's side of the protocol: a worker as a child process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::census::{Census, Group};
use crate::living;
use crate::protocol::{Answer, Description, Envelope, Outcome, Reply, Request, Resources, Sample, VERSION};
use crate::trouble::WorkerError;

/// A line longer than this is garbage, not a reply: the longest honest one, a thousand samples with phases, is
/// under a megabyte.
const LONGEST_LINE: u64 = 16 << 20;

/// How much of a worker's standard error is kept for its last words.
const LAST_WORDS: usize = 4096;

/// How long a dead worker's standard error is awaited: a child of its own that left its process group may hold it open
/// for ever.
const LINGERING: Duration = Duration::from_millis(500);

/// Samples beyond these take no longer to wait for: more are only asked of calls that are short.
const LONG_SAMPLES: usize = 8;

/// How to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables added to the environment.
    pub environment: BTreeMap<String, String>,
}

/// How long to wait for each sort of call before the worker is taken to hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For describe and stop.
    pub describe: Duration,
    /// For build, which may compile.
    pub build: Duration,
    /// For load and output, which read and write files.
    pub transfer: Duration,
    /// For one computation; `time` may take this for each of its first eight samples.
    pub compute: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            describe: Duration::from_secs(20),
            build: Duration::from_secs(120),
            transfer: Duration::from_secs(120),
            compute: Duration::from_secs(60),
        }
    }
}

impl Patience {
    fn with(self, request: &Request) -> Duration {
        match request {
            Request::Describe | Request::Stop => self.describe,
            Request::Build { .. } => self.build,
            Request::Load { .. } | Request::Output { .. } => self.transfer,
            Request::Run { .. } => self.compute,
            Request::Time { samples, .. } => self
                .compute
                .saturating_mul((*samples).clamp(1, LONG_SAMPLES) as u32),
        }
    }
}

/// A worker that runs as a child process. It is killed, with all of its process group, when dropped.
pub struct WorkerProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<io::Result<String>>,
    last_words: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
    patience: Patience,
    group: Group,
    next_id: u64,
    ended: bool,
}

impl WorkerProcess {
    /// Starts the program in a process group of its own, in `directory`, and asks it who it is.
    pub fn start(
        command: &WorkerCommand,
        directory: &Path,
        patience: Patience,
    ) -> Result<(Self, Description), WorkerError> {
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .envs(&command.environment)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| WorkerError::Start {
                program: command.program.display().to_string(),
                source,
            })?;
        let group = i32::try_from(child.id()).unwrap_or(i32::MAX);
        living::enter(group);
        let (sender, lines) = sync_channel(4);
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || forward_lines(stdout, &sender));
        }
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let listener = child.stderr.take().map(|stderr| {
            let kept = Arc::clone(&last_words);
            thread::spawn(move || keep_tail(stderr, &kept))
        });
        let stdin = child.stdin.take();
        let mut worker = Self {
            child,
            stdin,
            lines,
            last_words,
            listener,
            patience,
            group: Group::new(Pid::from_raw(group)),
            next_id: 1,
            ended: false,
        };
        let description = worker.describe()?;
        Ok((worker, description))
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Seconds of processor time taken by the worker so far, with the processes of its group that the last
    /// [`census`](Self::census) found; none where the system does not tell. Takes microseconds.
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.group.cpu_seconds()
    }

    /// Counts the processes of the worker's group and what they take; none where the system does not tell. Takes up to
    /// milliseconds, since every process of the system is looked at.
    pub fn census(&mut self) -> Option<Census> {
        self.group.count()
    }

    fn describe(&mut self) -> Result<Description, WorkerError> {
        match self.call(Request::Describe)? {
            Answer::Description(description) if description.protocol == VERSION => Ok(description),
            Answer::Description(description) => Err(self.garbage(
                "describe",
                format!(
                    "it speaks version {} of the protocol, not {VERSION}",
                    description.protocol
                ),
                &description.worker,
            )),
            other => Err(self.wrong_answer("describe", &other)),
        }
    }

    /// Prepares a schedule for a problem.
    pub fn build(&mut self, problem: &Problem, schedule: &Schedule) -> Result<Resources, WorkerError> {
        match self.call(Request::Build {
            problem: problem.clone(),
            schedule: schedule.clone(),
        })? {
            Answer::Built { resources } => Ok(resources),
            other => Err(self.wrong_answer("build", &other)),
        }
    }

    /// Loads operands from safetensors files, `copies` in all, from each file in turn.
    pub fn load(&mut self, inputs: &[&Path], copies: usize) -> Result<u64, WorkerError> {
        match self.call(Request::Load {
            inputs: inputs.iter().map(|path| path.to_path_buf()).collect(),
            copies,
        })? {
            Answer::Loaded { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("load", &other)),
        }
    }

    /// Poisons the output and computes once.
    pub fn run(&mut self, copy: usize) -> Result<Sample, WorkerError> {
        match self.call(Request::Run { copy })? {
            Answer::Ran(sample) => Ok(sample),
            other => Err(self.wrong_answer("run", &other)),
        }
    }

    /// Times `samples` calls; also returns how long the exchange took on the coordinator's own clock, in seconds,
    /// which the sum of the reported times cannot exceed.
    pub fn time(
        &mut self,
        samples: usize,
        first_copy: usize,
        phases: bool,
    ) -> Result<(Vec<Sample>, f64), WorkerError> {
        let start = Instant::now();
        match self.call(Request::Time {
            samples,
            first_copy,
            phases,
        })? {
            Answer::Timed { samples: timed } if timed.len() == samples => {
                let elapsed = start.elapsed().as_secs_f64();
                match timed.iter().find(|sample| !sample.is_possible()) {
                    Some(sample) => Err(self.garbage("time", format!("no such time can be: {sample:?}"), "")),
                    None => Ok((timed, elapsed)),
                }
            }
            Answer::Timed { samples: timed } => Err(self.garbage(
                "time",
                format!("{} samples where {samples} were asked for", timed.len()),
                "",
            )),
            other => Err(self.wrong_answer("time", &other)),
        }
    }

    /// Has the last result written to a file.
    pub fn output(&mut self, path: &Path) -> Result<u64, WorkerError> {
        match self.call(Request::Output {
            path: path.to_owned(),
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("output", &other)),
        }
    }

    fn call(&mut self, request: Request) -> Result<Answer, WorkerError> {
        let call = request.name();
        let limit = self.patience.with(&request);
        let id = self.next_id;
        self.next_id += 1;
        let mut line = serde_json::to_vec(&Envelope { id, request })
            .map_err(|error| self.garbage(call, error.to_string(), ""))?;
        line.push(b'\n');
        let sent = self
            .stdin
            .as_mut()
            .is_some_and(|stdin| stdin.write_all(&line).and_then(|()| stdin.flush()).is_ok());
        if !sent {
            return Err(self.died(call));
        }
        let line = match self.lines.recv_timeout(limit) {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => return Err(self.garbage(call, error.to_string(), "")),
            Err(RecvTimeoutError::Disconnected) => return Err(self.died(call)),
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                return Err(WorkerError::Late {
                    call,
                    limit,
                    last_words: self.last_words(),
                });
            }
        };
        let reply: Reply =
            serde_json::from_str(&line).map_err(|error| self.garbage(call, error.to_string(), &line))?;
        if reply.id != id {
            return Err(self.garbage(call, format!("it answers request {}, not {id}", reply.id), &line));
        }
        match reply.outcome {
            Outcome::Done(answer) => Ok(answer),
            Outcome::Failed { error } => Err(WorkerError::Failed(error)),
        }
    }

    fn died(&mut self, call: &'static str) -> WorkerError {
        // Standard output is closed, so the process is gone or going; one that lingers is put down.
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            status = self.child.try_wait().ok().flatten();
            thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        WorkerError::Died {
            call,
            status,
            last_words: self.last_words(),
        }
    }

    fn garbage(&mut self, call: &'static str, reason: String, line: &str) -> WorkerError {
        self.kill();
        let line = line.chars().take(200).collect();
        WorkerError::Garbage {
            call,
            reason,
            line,
            last_words: self.last_words(),
        }
    }

    fn wrong_answer(&mut self, call: &'static str, answer: &Answer) -> WorkerError {
        let line = serde_json::to_string(answer).unwrap_or_default();
        self.garbage(call, "the answer belongs to another call".to_owned(), &line)
    }

    fn kill(&mut self) {
        self.stdin = None;
        // Once: when the process has been waited for, its number may be another's.
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        if let Ok(group) = i32::try_from(self.child.id()) {
            living::leave(group);
            // The group may be gone already; that is what was wanted.
            let _gone = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _reaped = self.child.wait();
        let deadline = Instant::now() + LINGERING;
        while self
            .listener
            .as_ref()
            .is_some_and(|listener| !listener.is_finished())
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn last_words(&self) -> String {
        let kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn forward_lines(stdout: impl Read, lines: &SyncSender<io::Result<String>>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = String::new();
        let message = match reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
            Ok(0) => return,
            Ok(length) if length as u64 == LONGEST_LINE => Err(io::Error::other(format!(
                "a line longer than {} MiB",
                LONGEST_LINE >> 20
            ))),
            // Cut off by the worker's death, of which the caller is to hear.
            Ok(_) if !line.ends_with('\n') => return,
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        let last = message.is_err();
        if lines.send(message).is_err() || last {
            return;
        }
    }
}

fn keep_tail(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..length]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
}
