//! The coordinator's side of the protocol: a worker as a child process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_formats::TensorSpec;
use gauntlet_parameters::Parameters;
use gauntlet_task::Sizes;
use tempfile::TempDir;

use crate::census::{Census, Group};
use crate::children;
use crate::confinement::{self, Confinement, Init};
use crate::error::WorkerError;
use crate::held::Held;
use crate::launch::{Launched, Lifeline, WorkerCommand, launch};
use crate::leader::Leader;
use crate::limits::Limits;
use crate::pipes::{Heard, Replies, Requests, StandardError};
#[cfg(target_os = "linux")]
use crate::placement::Placement;
use crate::protocol::{
    Answer, CaseRequest, Description, Envelope, Outcome, POISON, Parameter, Reply, Request, Resources,
    Sample, VERSION,
};
use crate::timeouts::Timeouts;
use crate::watch::{self, Excess, Watch};

/// How long to wait for the last line of a worker that has ended.
const LAST_LINE: Duration = Duration::from_millis(100);

/// How long to wait for the end of a dead worker's standard error: a child that left the worker's process group may
/// hold it open forever.
const LINGERING: Duration = Duration::from_millis(500);

/// Most bytes of results that a worker keeps from one request.
const MOST_RESULT_BYTES: usize = 256 << 20;

/// How many calls a request may have, at least one, so that a worker can keep all of their results.
pub fn most_calls(sizes: &Sizes) -> usize {
    let bytes: usize = sizes.outputs().iter().map(TensorSpec::bytes).sum();
    (MOST_RESULT_BYTES / bytes.max(1)).max(1)
}

/// An exchange in progress.
pub(crate) struct Asked {
    /// The request's name.
    pub call: &'static str,
    id: u64,
    /// When the first byte was sent.
    begun: Instant,
    timeout: Duration,
    is_last: bool,
}

/// A worker that runs as a child process, confined and within limits. Dropping it kills its whole process group and
/// removes its folder.
pub struct WorkerProcess {
    leader: Leader,
    /// Process 1 of its namespace.
    init: Option<Init>,
    pub(crate) requests: Option<Requests>,
    replies: Option<Replies>,
    standard_error: Arc<StandardError>,
    listener: Option<JoinHandle<()>>,
    timeouts: Timeouts,
    watch: Watch,
    pub(crate) group: Group,
    /// Its memory, if the coordinator writes operands there and reads results.
    pub(crate) held: Option<Held>,
    /// Why its memory cannot be reached, though it offered that.
    pub(crate) unreachable: Option<String>,
    /// Where its build's files are.
    artefacts: Option<PathBuf>,
    next_id: u64,
    ended: bool,
    folder: TempDir,
    _lifeline: Lifeline,
}

impl WorkerProcess {
    /// Starts the program within the limits of this machine, see [`start_within`](Self::start_within).
    pub fn start(
        command: &WorkerCommand,
        workers_folder: &Path,
        timeouts: Timeouts,
    ) -> Result<(Self, Description), WorkerError> {
        Self::start_within(command, workers_folder, timeouts, Limits::default())
    }

    /// Starts the program in its own process group and in a new folder inside `workers_folder`, and requests its
    /// description.
    ///
    /// The worker can write nowhere else, and read nothing else in `workers_folder`: files that it is to read must lie
    /// in another folder, which must exist now. Where the system cannot enforce this, the worker starts all the same;
    /// [`safeguards`](crate::safeguards) reports it.
    pub fn start_within(
        command: &WorkerCommand,
        workers_folder: &Path,
        timeouts: Timeouts,
        limits: Limits,
    ) -> Result<(Self, Description), WorkerError> {
        let start = || Self::try_start(command, workers_folder, timeouts, limits);
        start().or_else(|error| {
            if !command.allowances.may_share_processes || confinement::way().is_err() {
                return Err(error);
            }
            confinement::give_up(true);
            // If it does not start without a namespace either, the namespace is not the cause.
            start()
                .inspect_err(|_| confinement::give_up(false))
                .map_err(|_| error)
        })
    }

    fn try_start(
        command: &WorkerCommand,
        workers_folder: &Path,
        timeouts: Timeouts,
        limits: Limits,
    ) -> Result<(Self, Description), WorkerError> {
        let mut worker =
            Self::spawn(command, workers_folder, timeouts, limits).map_err(|source| WorkerError::Start {
                program: command.program.display().to_string(),
                source,
            })?;
        let description = worker.describe()?;
        // A Python worker has not seen its kernel yet, so the answer is the system's alone. A shared library is loaded by now.
        let process = worker.leader.pid();
        match description.memory.map(|address| Held::tried(process, address)) {
            Some(Ok(held)) => worker.held = Some(held),
            Some(Err(error)) => worker.unreachable = Some(error.to_string()),
            None => {}
        }
        Ok((worker, description))
    }

    fn spawn(
        command: &WorkerCommand,
        workers_folder: &Path,
        timeouts: Timeouts,
        limits: Limits,
    ) -> io::Result<Self> {
        children::adopt_orphans();
        let folder = tempfile::Builder::new()
            .prefix("worker-")
            .tempdir_in(workers_folder)?;
        let artefacts = command.artefacts.as_ref();
        let confinement = Confinement::new(
            workers_folder,
            folder.path(),
            &limits,
            &command.allowances,
            artefacts,
        )?;
        let written = artefacts.filter(|artefacts| artefacts.writable);
        let written = written.map(|artefacts| artefacts.folder.clone());
        let watched = std::iter::once(folder.path().to_owned()).chain(written);
        let Launched { started, lifeline } = launch(command, folder.path(), confinement)?;
        let group = started.leader.pid();
        children::enter(group.as_raw());
        let standard_error = Arc::new(StandardError::default());
        let mut worker = Self {
            leader: started.leader,
            requests: None,
            replies: None,
            standard_error: Arc::clone(&standard_error),
            listener: None,
            timeouts,
            watch: Watch::new(limits, watched.collect()),
            group: Group::new(group, started.init.as_ref().map(Init::id)),
            held: None,
            unreachable: None,
            init: started.init,
            artefacts: artefacts.map(|artefacts| artefacts.folder.clone()),
            next_id: 1,
            ended: false,
            folder,
            _lifeline: lifeline,
        };
        // From here on an error drops the worker, which ends it.
        worker.requests = started.stdin.map(Requests::new).transpose()?;
        worker.replies = started.stdout.map(Replies::new).transpose()?;
        if let Some(stderr) = started.stderr {
            let listen = move || standard_error.listen(stderr, limits.standard_error);
            worker.listener = Some(thread::Builder::new().spawn(listen)?);
        }
        Ok(worker)
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.leader.pid().as_raw().unsigned_abs()
    }

    /// The only folder that it may write to.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Seconds of processor time used by the worker so far, including the processes of its group that the last
    /// [`census`](Self::census) found; `None` where the system does not report it. Takes microseconds.
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.group.cpu_seconds()
    }

    /// Seconds that the worker's threads have waited for a processor while they were ready to run; `None` where the
    /// system does not report it. Covers the living threads of the processes that the last [`census`](Self::census)
    /// found.
    pub fn waited_seconds(&self) -> Option<f64> {
        self.group.waited_seconds()
    }

    /// Counts the processes of the worker's group and their resources; `None` where the system does not report them.
    /// Takes up to milliseconds, since it reads every process of the system.
    pub fn census(&mut self) -> Option<Census> {
        self.group.count()
    }

    /// The ids of the processes that the last [`census`](Self::census) found in the worker's group.
    pub fn processes(&self) -> Vec<u32> {
        self.group.members().map(i32::unsigned_abs).collect()
    }

    /// Where the threads of the worker's group may run, and how urgently; covers the processes that the last
    /// [`census`](Self::census) found.
    #[cfg(target_os = "linux")]
    pub fn placement(&self) -> Placement {
        Placement::of(self.group.members())
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

    /// Prepares a kernel for a case.
    pub fn build(&mut self, sizes: &Sizes, parameters: &Parameters) -> Result<Resources, WorkerError> {
        match self.call(Request::Build {
            case: CaseRequest::of(sizes),
            parameters: parameters.clone(),
            artefacts: self.artefacts.clone(),
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
            Answer::Loaded { bytes } => {
                if let Some(held) = &mut self.held {
                    held.begin();
                }
                Ok(bytes)
            }
            other => Err(self.wrong_answer("load", &other)),
        }
    }

    /// Tells the worker to prepare everything that stays the same in every call; returns the bytes that this takes
    /// besides the operands.
    pub fn prepare(&mut self) -> Result<u64, WorkerError> {
        match self.call(Request::Prepare)? {
            Answer::Prepared { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("prepare", &other)),
        }
    }

    /// Makes every element of the outputs NaN and computes once.
    pub fn run(&mut self, copy: usize) -> Result<Sample, WorkerError> {
        self.run_poisoned(copy, POISON)
    }

    /// Fills the outputs with a byte and computes once.
    pub fn run_poisoned(&mut self, copy: usize, poison: u8) -> Result<Sample, WorkerError> {
        match self.call(Request::Run { copy, poison })? {
            Answer::Ran(sample) => Ok(sample),
            other => Err(self.wrong_answer("run", &other)),
        }
    }

    /// Times one call on each of these copies; also returns the duration of the exchange on the coordinator's own clock,
    /// in seconds. The sum of the reported times cannot exceed it. The worker keeps all results: [`most_calls`] bounds
    /// their number.
    pub fn time(&mut self, copies: &[usize], phases: bool) -> Result<(Vec<Sample>, f64), WorkerError> {
        let (answer, elapsed) = self.exchange(Request::Time {
            copies: copies.to_vec(),
            phases,
        })?;
        match answer {
            Answer::Timed { samples: timed } if timed.len() == copies.len() => {
                match timed.iter().find(|sample| !sample.is_possible()) {
                    Some(sample) => Err(self.garbage("time", format!("no such time can be: {sample:?}"), "")),
                    None => Ok((timed, elapsed.as_secs_f64())),
                }
            }
            Answer::Timed { samples: timed } => Err(self.garbage(
                "time",
                format!("{} samples where {} were asked for", timed.len(), copies.len()),
                "",
            )),
            other => Err(self.wrong_answer("time", &other)),
        }
    }

    /// Tells the worker to write the result of a call of the last `run` or `time` to a file.
    pub fn output(&mut self, path: &Path, index: usize) -> Result<u64, WorkerError> {
        match self.call(Request::Output {
            path: path.to_owned(),
            index,
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("output", &other)),
        }
    }

    /// Tells the worker to measure the costs of its primitives.
    pub fn calibrate(&mut self, quick: bool) -> Result<Vec<Parameter>, WorkerError> {
        match self.call(Request::Calibrate { quick })? {
            Answer::Calibrated { parameters } => {
                match parameters
                    .iter()
                    .find(|one| !(one.value >= 0.0 && one.value.is_finite()))
                {
                    Some(odd) => Err(self.garbage("calibrate", format!("no cost can be so: {odd:?}"), "")),
                    None => Ok(parameters),
                }
            }
            other => Err(self.wrong_answer("calibrate", &other)),
        }
    }

    /// Tells the worker to write a timeline of one call on the device to a file.
    pub fn trace(&mut self, path: &Path) -> Result<u64, WorkerError> {
        match self.call(Request::Trace {
            path: path.to_owned(),
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("trace", &other)),
        }
    }

    /// Tells the worker to exit and waits until it has, which takes longer under a tool. Files that it wrote to its
    /// folder stay until `self` is dropped.
    ///
    /// # Errors
    /// If it does not exit within the time for `describe`.
    pub fn stop(&mut self) -> Result<(), WorkerError> {
        let begun = Instant::now();
        match self.call(Request::Stop)? {
            Answer::Stopped => {}
            other => return Err(self.wrong_answer("stop", &other)),
        }
        while self.leader.try_wait().is_none() {
            if begun.elapsed() > self.timeouts.describe {
                self.kill();
                return Err(WorkerError::Late {
                    call: "stop",
                    limit: self.timeouts.describe,
                    stderr_tail: self.standard_error.stderr_tail(),
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn call(&mut self, request: Request) -> Result<Answer, WorkerError> {
        self.exchange(request).map(|(answer, _)| answer)
    }

    /// Sends a request and waits for the answer; also returns the time from the first byte sent to the last received.
    fn exchange(&mut self, request: Request) -> Result<(Answer, Duration), WorkerError> {
        let (asked, request) = self.open(request)?;
        let answered = self.await_line(&asked, &request)?;
        let elapsed = asked.begun.elapsed();
        Ok((self.close(&asked, &answered)?, elapsed))
    }

    /// Begins an exchange: the worker goes on, and the line that is returned has to be sent.
    pub(crate) fn open(&mut self, request: Request) -> Result<(Asked, Vec<u8>), WorkerError> {
        let (call, id) = (request.name(), self.next_id);
        let (timeout, is_last) = (self.timeouts.with(&request), matches!(request, Request::Stop));
        self.next_id += 1;
        let mut line = serde_json::to_vec(&Envelope { id, request })
            .map_err(|error| self.garbage(call, error.to_string(), ""))?;
        line.push(b'\n');
        self.expect_silence(call)?;
        let begun = Instant::now();
        if let Some(held) = &mut self.held {
            held.resume();
        }
        let asked = Asked {
            call,
            id,
            begun,
            timeout,
            is_last,
        };
        Ok((asked, line))
    }

    /// Ends an exchange with the line that answers.
    pub(crate) fn close(&mut self, asked: &Asked, answered: &str) -> Result<Answer, WorkerError> {
        if let Some(held) = self.held.as_mut().filter(|_| !asked.is_last) {
            held.stop();
        }
        if self.watch.is_overdue() {
            self.look(asked.call)?;
        }
        let reply: Reply = serde_json::from_str(answered)
            .map_err(|error| self.garbage(asked.call, error.to_string(), answered))?;
        if reply.id != asked.id {
            let reason = format!("it answers request {}, not {}", reply.id, asked.id);
            return Err(self.garbage(asked.call, reason, answered));
        }
        match reply.outcome {
            Outcome::Done(answer) => Ok(answer),
            Outcome::Failed { error } => Err(WorkerError::Failed(error)),
        }
    }

    /// Fails if a line is there before the request is sent: it cannot be an answer to it. The first answer, the
    /// description, may come unasked: its number is checked instead.
    fn expect_silence(&mut self, call: &'static str) -> Result<(), WorkerError> {
        if self.next_id <= 2 {
            return Ok(());
        }
        match self.hear(Duration::ZERO) {
            Ok(Heard::Nothing) => Ok(()),
            Ok(Heard::End) => Err(self.died(call)),
            Ok(Heard::Line(line)) => {
                Err(self.garbage(call, "it came before it was asked for".to_owned(), &line))
            }
            Err(error) => Err(self.garbage(call, error.to_string(), "")),
        }
    }

    fn hear(&mut self, within: Duration) -> io::Result<Heard> {
        self.replies
            .as_mut()
            .map_or(Ok(Heard::End), |replies| replies.hear(within))
    }

    /// Sends bytes and waits for a line, checking the worker's limits meanwhile.
    pub(crate) fn await_line(&mut self, asked: &Asked, mut bytes: &[u8]) -> Result<String, WorkerError> {
        let (call, timeout) = (asked.call, asked.timeout);
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(asked.begun.elapsed());
            let slice = left.min(watch::INTERVAL);
            if bytes.is_empty() {
                match self.hear(slice) {
                    Ok(Heard::Line(line)) => return Ok(line),
                    Ok(Heard::End) => return Err(self.died(call)),
                    // A child of the worker that is still alive may hold its standard output open.
                    Ok(Heard::Nothing) if self.leader.has_ended() => {
                        return match self.hear(LAST_LINE) {
                            Ok(Heard::Line(line)) => Ok(line),
                            _ => Err(self.died(call)),
                        };
                    }
                    Ok(Heard::Nothing) => {}
                    Err(error) => return Err(self.garbage(call, error.to_string(), "")),
                }
            } else {
                let sent = self.requests.as_mut().map(|requests| requests.send(bytes, slice));
                match sent {
                    Some(Ok(rest)) => bytes = rest,
                    Some(Err(_)) | None => return Err(self.died(call)),
                }
            }
            if asked.begun.elapsed() >= timeout {
                self.kill();
                return Err(WorkerError::Late {
                    call,
                    limit: timeout,
                    stderr_tail: self.standard_error.stderr_tail(),
                });
            }
            if begun.elapsed() >= watch::INTERVAL {
                self.look(call)?;
            }
        }
    }

    /// Ends the worker if it has exceeded a limit.
    fn look(&mut self, call: &'static str) -> Result<(), WorkerError> {
        match self.watch.excess(&mut self.group, &self.standard_error) {
            None => Ok(()),
            Some(excess) => {
                self.kill();
                Err(self.over_limit(call, excess))
            }
        }
    }

    fn over_limit(&self, call: &'static str, Excess { what, limit }: Excess) -> WorkerError {
        WorkerError::OverLimit {
            call,
            what,
            limit,
            stderr_tail: self.standard_error.stderr_tail(),
        }
    }

    pub(crate) fn died(&mut self, call: &'static str) -> WorkerError {
        // Standard output is closed, so the process is gone or about to exit; it is killed if it lingers.
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut ended = self.leader.has_ended();
        while !ended && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
            ended = self.leader.has_ended();
        }
        self.kill();
        let status = self.leader.try_wait().filter(|_| ended);
        // Standard error is closed when it exceeds the limit, which may have killed the worker.
        match self.watch.of_output(&self.standard_error) {
            Some(excess) => self.over_limit(call, excess),
            None => WorkerError::Died {
                call,
                status,
                stderr_tail: self.standard_error.stderr_tail(),
            },
        }
    }

    pub(crate) fn garbage(&mut self, call: &'static str, reason: String, line: &str) -> WorkerError {
        self.kill();
        let line = line.chars().take(200).collect();
        WorkerError::Garbage {
            call,
            reason,
            line,
            stderr_tail: self.standard_error.stderr_tail(),
        }
    }

    pub(crate) fn wrong_answer(&mut self, call: &'static str, answer: &Answer) -> WorkerError {
        let line = serde_json::to_string(answer).unwrap_or_default();
        self.garbage(call, "the answer belongs to another call".to_owned(), &line)
    }

    fn kill(&mut self) {
        self.requests = None;
        // Only once: after the process has been waited for, its number may belong to another process.
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let deadline = Instant::now() + LINGERING;
        children::end(&mut self.leader, self.init.as_mut(), deadline);
        let is_heard_out = |listener: &JoinHandle<()>| listener.is_finished();
        while !self.listener.as_ref().is_none_or(is_heard_out) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
