//! The coordinator's side of the protocol: a worker as a child process.

use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_parameters::Parameters;
use gauntlet_task::Sizes;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::census::{Census, Group};
use crate::confinement::Confinement;
use crate::launch::{Launched, Lifeline, WorkerCommand, launch};
use crate::limits::Limits;
use crate::living;
use crate::patience::Patience;
use crate::pipes::{Complaints, Requests};
use crate::protocol::{
    Answer, CaseRequest, Description, Envelope, Outcome, POISON, Parameter, Reply, Request, Resources,
    Sample, VERSION,
};
use crate::trouble::WorkerError;
use crate::watch::{self, Excess, Watch};

/// How long a line of a worker that has ended may take to arrive.
const LAST_LINE: Duration = Duration::from_millis(100);

/// How long a dead worker's standard error is awaited: a child of its own that left its process group may hold it open
/// for ever.
const LINGERING: Duration = Duration::from_millis(500);

/// A worker that runs as a child process, confined and within limits. It is killed, with all of its process group, when
/// dropped; its folder goes with it.
pub struct WorkerProcess {
    child: Child,
    requests: Option<Requests>,
    lines: Receiver<io::Result<String>>,
    complaints: Arc<Complaints>,
    listener: Option<JoinHandle<()>>,
    patience: Patience,
    watch: Watch,
    group: Group,
    next_id: u64,
    ended: bool,
    folder: TempDir,
    _lifeline: Lifeline,
}

impl WorkerProcess {
    /// Starts the program within the limits of this machine, see [`start_within`](Self::start_within).
    pub fn start(
        command: &WorkerCommand,
        yard: &Path,
        patience: Patience,
    ) -> Result<(Self, Description), WorkerError> {
        Self::start_within(command, yard, patience, Limits::default())
    }

    /// Starts the program in a process group of its own and a new folder of its own in `yard`, and asks it who it is.
    ///
    /// The worker writes nowhere else, and reads nothing else in the yard: what it is to read must lie in a folder
    /// elsewhere, which must be there now. Where the system cannot hold it to this, it is started all the same;
    /// [`safeguards`](crate::safeguards) tells.
    pub fn start_within(
        command: &WorkerCommand,
        yard: &Path,
        patience: Patience,
        limits: Limits,
    ) -> Result<(Self, Description), WorkerError> {
        let mut worker =
            Self::spawn(command, yard, patience, limits).map_err(|source| WorkerError::Start {
                program: command.program.display().to_string(),
                source,
            })?;
        let description = worker.describe()?;
        Ok((worker, description))
    }

    fn spawn(command: &WorkerCommand, yard: &Path, patience: Patience, limits: Limits) -> io::Result<Self> {
        living::adopt_orphans();
        let folder = tempfile::Builder::new().prefix("worker-").tempdir_in(yard)?;
        let confinement = Confinement::new(yard, folder.path(), &limits, &command.allowances)?;
        let Launched {
            mut child,
            lines,
            lifeline,
        } = launch(command, folder.path(), confinement)?;
        let group = i32::try_from(child.id()).unwrap_or(i32::MAX);
        living::enter(group);
        let complaints = Arc::new(Complaints::default());
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let mut worker = Self {
            child,
            requests: None,
            lines,
            complaints: Arc::clone(&complaints),
            listener: None,
            patience,
            watch: Watch::new(limits, folder.path().to_owned()),
            group: Group::new(Pid::from_raw(group)),
            next_id: 1,
            ended: false,
            folder,
            _lifeline: lifeline,
        };
        // From here on an error drops the worker, and so ends it.
        worker.requests = stdin.map(Requests::new).transpose()?;
        if let Some(stderr) = stderr {
            let listen = move || complaints.listen(stderr, limits.standard_error);
            worker.listener = Some(thread::Builder::new().spawn(listen)?);
        }
        Ok(worker)
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The folder in which alone it may write.
    pub fn folder(&self) -> &Path {
        self.folder.path()
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

    /// Prepares a kernel for a case.
    pub fn build(&mut self, sizes: &Sizes, parameters: &Parameters) -> Result<Resources, WorkerError> {
        match self.call(Request::Build {
            case: CaseRequest::of(sizes),
            parameters: parameters.clone(),
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

    /// Has the worker prepare what stays the same in every call; returns the bytes that it takes beside the operands.
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

    /// Times `samples` calls; also returns how long the exchange took on the coordinator's own clock, in seconds,
    /// which the sum of the reported times cannot exceed.
    pub fn time(
        &mut self,
        samples: usize,
        first_copy: usize,
        phases: bool,
    ) -> Result<(Vec<Sample>, f64), WorkerError> {
        let (answer, elapsed) = self.exchange(Request::Time {
            samples,
            first_copy,
            phases,
            keep: 1,
        })?;
        match answer {
            Answer::Timed { samples: timed } if timed.len() == samples => {
                match timed.iter().find(|sample| !sample.is_possible()) {
                    Some(sample) => Err(self.garbage("time", format!("no such time can be: {sample:?}"), "")),
                    None => Ok((timed, elapsed.as_secs_f64())),
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
            calls_before: 0,
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("output", &other)),
        }
    }

    /// Has the worker measure what its primitives cost.
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

    /// Has what each part of the device does in a call written to a file.
    pub fn trace(&mut self, path: &Path) -> Result<u64, WorkerError> {
        match self.call(Request::Trace {
            path: path.to_owned(),
        })? {
            Answer::Written { bytes } => Ok(bytes),
            other => Err(self.wrong_answer("trace", &other)),
        }
    }

    /// Tells the worker to exit and waits until it has, which a tool that runs it takes longer over; what it wrote into
    /// its folder is there until this is dropped.
    ///
    /// # Errors
    /// If it does not exit within the time for `describe`.
    pub fn stop(&mut self) -> Result<(), WorkerError> {
        let begun = Instant::now();
        match self.call(Request::Stop)? {
            Answer::Stopped => {}
            other => return Err(self.wrong_answer("stop", &other)),
        }
        while self.child.try_wait().ok().flatten().is_none() {
            if begun.elapsed() > self.patience.describe {
                self.kill();
                return Err(WorkerError::Late {
                    call: "stop",
                    limit: self.patience.describe,
                    last_words: self.complaints.last_words(),
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn call(&mut self, request: Request) -> Result<Answer, WorkerError> {
        self.exchange(request).map(|(answer, _)| answer)
    }

    /// Asks and awaits the answer; also returns the time from the first byte sent to the last received.
    fn exchange(&mut self, request: Request) -> Result<(Answer, Duration), WorkerError> {
        let call = request.name();
        let patience = self.patience.with(&request);
        let id = self.next_id;
        self.next_id += 1;
        let mut line = serde_json::to_vec(&Envelope { id, request })
            .map_err(|error| self.garbage(call, error.to_string(), ""))?;
        line.push(b'\n');
        self.expect_silence(call)?;
        let begun = Instant::now();
        let answered = self.await_line(call, &line, begun, patience)?;
        let elapsed = begun.elapsed();
        if self.watch.is_overdue() {
            self.look(call)?;
        }
        let reply: Reply = serde_json::from_str(&answered)
            .map_err(|error| self.garbage(call, error.to_string(), &answered))?;
        if reply.id != id {
            let reason = format!("it answers request {}, not {id}", reply.id);
            return Err(self.garbage(call, reason, &answered));
        }
        match reply.outcome {
            Outcome::Done(answer) => Ok((answer, elapsed)),
            Outcome::Failed { error } => Err(WorkerError::Failed(error)),
        }
    }

    /// An answer that is there before its question was not made for it. Who it is may be told unasked: the first
    /// answer's number tells whether it is one.
    fn expect_silence(&mut self, call: &'static str) -> Result<(), WorkerError> {
        if self.next_id <= 2 {
            return Ok(());
        }
        match self.lines.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(self.died(call)),
            Ok(Ok(line)) => Err(self.garbage(call, "it came before it was asked for".to_owned(), &line)),
            Ok(Err(error)) => Err(self.garbage(call, error.to_string(), "")),
        }
    }

    /// Sends a request and awaits a line, looking after the worker's limits meanwhile.
    fn await_line(
        &mut self,
        call: &'static str,
        mut request: &[u8],
        begun: Instant,
        patience: Duration,
    ) -> Result<String, WorkerError> {
        loop {
            let left = patience.saturating_sub(begun.elapsed());
            let slice = left.min(watch::INTERVAL);
            if request.is_empty() {
                match self.lines.recv_timeout(slice) {
                    Ok(Ok(line)) => return Ok(line),
                    Ok(Err(error)) => return Err(self.garbage(call, error.to_string(), "")),
                    Err(RecvTimeoutError::Disconnected) => return Err(self.died(call)),
                    // A child of the worker's that lives on may hold its standard output open.
                    Err(RecvTimeoutError::Timeout) if living::has_ended(&mut self.child) => {
                        return match self.lines.recv_timeout(LAST_LINE) {
                            Ok(Ok(line)) => Ok(line),
                            _ => Err(self.died(call)),
                        };
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            } else {
                let sent = self
                    .requests
                    .as_mut()
                    .map(|requests| requests.send(request, slice));
                match sent {
                    Some(Ok(rest)) => request = rest,
                    Some(Err(_)) | None => return Err(self.died(call)),
                }
            }
            if begun.elapsed() >= patience {
                self.kill();
                return Err(WorkerError::Late {
                    call,
                    limit: patience,
                    last_words: self.complaints.last_words(),
                });
            }
            if begun.elapsed() >= watch::INTERVAL {
                self.look(call)?;
            }
        }
    }

    /// Ends the worker if it has taken too much.
    fn look(&mut self, call: &'static str) -> Result<(), WorkerError> {
        match self.watch.excess(&mut self.group, &self.complaints) {
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
            last_words: self.complaints.last_words(),
        }
    }

    fn died(&mut self, call: &'static str) -> WorkerError {
        // Standard output is closed, so the process is gone or going; one that lingers is put down.
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut ended = living::has_ended(&mut self.child);
        while !ended && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
            ended = living::has_ended(&mut self.child);
        }
        self.kill();
        let status = self.child.try_wait().ok().flatten().filter(|_| ended);
        // Standard error was closed when it was too much, of which the worker may have died.
        match self.watch.of_output(&self.complaints) {
            Some(excess) => self.over_limit(call, excess),
            None => WorkerError::Died {
                call,
                status,
                last_words: self.complaints.last_words(),
            },
        }
    }

    fn garbage(&mut self, call: &'static str, reason: String, line: &str) -> WorkerError {
        self.kill();
        let line = line.chars().take(200).collect();
        WorkerError::Garbage {
            call,
            reason,
            line,
            last_words: self.complaints.last_words(),
        }
    }

    fn wrong_answer(&mut self, call: &'static str, answer: &Answer) -> WorkerError {
        let line = serde_json::to_string(answer).unwrap_or_default();
        self.garbage(call, "the answer belongs to another call".to_owned(), &line)
    }

    fn kill(&mut self) {
        self.requests = None;
        // Once: when the process has been waited for, its number may be another's.
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let deadline = Instant::now() + LINGERING;
        living::end(&mut self.child, deadline);
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
