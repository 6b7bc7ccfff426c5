//! The coordinator's side of the protocol: a worker as a child process.

mod calls;
mod exchange;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gauntlet_device::memory_kills;
use tempfile::TempDir;

use crate::census::{Census, Group};
use crate::children;
use crate::confinement::{self, Confinement, Init};
use crate::error::WorkerError;
use crate::held::{Held, Location};
use crate::launch::{Launched, Lifeline, WorkerCommand, launch};
use crate::leader::Leader;
use crate::limits::Limits;
use crate::pipes::{Replies, Requests, StandardError};
#[cfg(target_os = "linux")]
use crate::placement::Placement;
use crate::protocol::{Description, HOLD, Scope};
use crate::timeouts::Timeouts;
use crate::watch::Watch;

pub use calls::most_calls;
pub(crate) use exchange::Asked;

/// How long to wait for the end of a dead worker's standard error: a child that left the worker's process group may
/// hold it open forever.
const LINGERING: Duration = Duration::from_millis(500);

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
    /// Whether it can clock calls on the device alone.
    has_device_times: bool,
    /// Whether it can say what the device did in a call.
    tells_activity: bool,
    /// Whether it can keep the results of only some calls.
    chooses_results: bool,
    /// From where to where its calls are clocked.
    pub(crate) scope: Scope,
    /// Seconds for which it holds the device back before each call.
    pub(crate) hold: f64,
    /// Where its build's files are.
    artefacts: Option<PathBuf>,
    next_id: u64,
    ended: bool,
    /// How many processes the system had killed for want of memory when it started.
    memory_kills: Option<u64>,
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
        worker.has_device_times = description.device_times;
        worker.tells_activity = description.activity;
        worker.chooses_results = description.chooses_results;
        if description.device_times {
            worker.scope = Scope::Device;
        }
        // A Python worker has not seen its kernel yet, so the answer is the system's alone. A shared library is loaded by now.
        let process = worker.leader.pid();
        match description.memory.map(|address| Held::tried(process, address)) {
            Some(Ok(mut held)) => {
                held.heats = description.heat;
                held.row_major = description.row_major;
                worker.held = Some(held);
            }
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
        let Launched { started, lifeline } = launch(command, folder.path(), confinement, Stdio::piped())?;
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
            has_device_times: false,
            tells_activity: false,
            chooses_results: false,
            scope: Scope::Call,
            hold: HOLD,
            init: started.init,
            artefacts: artefacts.map(|artefacts| artefacts.folder.clone()),
            next_id: 1,
            ended: false,
            memory_kills: memory_kills(),
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

    /// Whether it can clock calls on the device alone. It does so unless [`clock`](Self::clock) says otherwise.
    pub fn has_device_times(&self) -> bool {
        self.has_device_times
    }

    /// Whether it can say what the device did in a call, unless a library is missing.
    pub fn tells_activity(&self) -> bool {
        self.tells_activity
    }

    /// Whether it can keep the results of only some calls.
    pub fn chooses_results(&self) -> bool {
        self.chooses_results
    }

    /// Lets the worker clock calls from here to there from now on. On the device alone only if it can.
    pub fn clock(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Lets the worker hold the device back before each call for this many seconds, if calls are clocked on the device.
    pub fn hold_back_for(&mut self, seconds: f64) {
        self.hold = seconds;
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
    ///
    /// Of a held worker on a GPU only the first thread counts, which makes the calls. The others do nothing in a call, but all of
    /// them wake up whenever the worker goes on: torch has dozens, which waited for 17 % of the time on a quiet machine with an H200.
    pub fn waited_seconds(&self) -> Option<f64> {
        if self.location() == Some(Location::Gpu) {
            return self.group.first_thread_waited_seconds();
        }
        self.group.waited_seconds()
    }

    /// Counts the processes of the worker's group and their resources; `None` where the system does not report them.
    /// Takes up to milliseconds, since it reads every process of the system.
    pub fn census(&mut self) -> Option<Census> {
        self.group.count()
    }

    /// Where the threads of the worker's group may run, and how urgently; covers the processes that the last
    /// [`census`](Self::census) found.
    #[cfg(target_os = "linux")]
    pub fn placement(&self) -> Placement {
        Placement::of(self.group.members())
    }

    /// Lets all threads of the worker run on these processors only; whether that could be done. Covers the processes that the
    /// last [`census`](Self::census) found.
    #[cfg(target_os = "linux")]
    pub fn restrict(&self, processors: &[usize]) -> bool {
        Placement::restrict(self.group.members(), processors)
    }

    pub(crate) fn kill(&mut self) {
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
