//! Starts workers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::artefacts::{Artefacts, CACHES};
use crate::confinement::{Allowances, Arrivals, Confinement, Init, Namespace};
use crate::environment;
use crate::leader::Leader;
use nix::unistd::Pid;

/// How to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables added to the environment.
    pub environment: BTreeMap<String, String>,
    /// Its permissions beyond those of every worker.
    pub allowances: Allowances,
    /// What its build made, or a folder for it; without one, caches lie in its own folder.
    pub artefacts: Option<Artefacts>,
}

impl WorkerCommand {
    /// A program with arguments, confined like every worker.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            environment: BTreeMap::new(),
            allowances: Allowances::default(),
            artefacts: None,
        }
    }

    /// The same command run by a tool such as a profiler: the tool's program and arguments, followed by the command.
    pub fn under(&self, tool: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        let own = std::iter::once(self.program.clone().into_os_string()).chain(self.arguments.clone());
        Self {
            program: tool.into(),
            arguments: arguments.into_iter().chain(own).collect(),
            environment: self.environment.clone(),
            allowances: Allowances {
                instruments: true,
                ..self.allowances.clone()
            },
            artefacts: None,
        }
    }
}

/// Tells programs where to write temporary files.
const TEMPORARY: &str = "TMPDIR";

/// Profilers keep their own files there.
const HOME: &str = "HOME";

/// The processes and pipes of a worker just started.
pub(crate) struct Started {
    pub leader: Leader,
    /// Process 1 of its namespace.
    pub init: Option<Init>,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

impl Started {
    fn of(leader: Leader, child: Child) -> Self {
        Self {
            leader,
            init: None,
            stdin: child.stdin,
            stdout: child.stdout,
            stderr: child.stderr,
        }
    }
}

/// A worker just started, and what keeps it alive.
pub(crate) struct Launched {
    pub started: Started,
    pub lifeline: Lifeline,
}

/// Keeps alive the thread that started a worker. The worker is killed when that thread ends, and so also when this
/// program ends, in whatever way.
pub(crate) struct Lifeline(
    #[expect(dead_code, reason = "never read: the thread waits until it is dropped")] SyncSender<()>,
);

/// Starts a confined worker in `folder`, in its own process group.
pub(crate) fn launch(
    command: &WorkerCommand,
    folder: &Path,
    confinement: Confinement,
    stdin: Stdio,
) -> io::Result<Launched> {
    let mut command = prepare(command, folder);
    command.stdin(stdin);
    start(command, folder, confinement)
}

/// Starts a command that was made by [`in_group`] for the same folder.
pub(crate) fn start(command: Command, folder: &Path, mut confinement: Confinement) -> io::Result<Launched> {
    let folder = folder.to_owned();
    let (started, start) = sync_channel(1);
    let (lifeline, end) = sync_channel(0);
    // The restrictions of this thread apply to the worker that it starts, and to nothing else.
    thread::Builder::new().name("worker".to_owned()).spawn(move || {
        let worker = confinement
            .restrict_thread()
            .and_then(|namespace| spawn(command, &folder, confinement, namespace));
        match worker {
            Err(error) => {
                let _nobody_waits = started.send(Err(error));
            }
            Ok(worker) => {
                let _nobody_waits = started.send(Ok(worker));
                let _cut = end.recv();
            }
        }
    })?;
    let started = start
        .recv()
        .map_err(|_| io::Error::other("the thread that starts it failed"))??;
    prefer_to_lose(started.leader.pid());
    Ok(Launched {
        started,
        lifeline: Lifeline(lifeline),
    })
}

fn prepare(command: &WorkerCommand, folder: &Path) -> Command {
    let mut prepared = in_group(&command.program, &command.arguments, folder);
    prepared
        .envs(environment::allowed())
        .env(TEMPORARY, folder)
        .envs(CACHES.map(|(variable, _)| (variable, folder)))
        .envs(command.artefacts.iter().flat_map(Artefacts::variables))
        .envs(command.allowances.instruments.then_some((HOME, folder)))
        .envs(&command.environment);
    prepared
}

/// A command in a process group of its own, without any variables.
pub(crate) fn in_group(program: &Path, arguments: &[OsString], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// How often to try starting a program that is still open for writing, and how long to wait in between.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Starts the worker. A program that was written a moment ago may be busy: another process that was forked during the
/// write holds the file open for writing until it has started its own program.
fn spawn(
    mut command: Command,
    folder: &Path,
    confinement: Confinement,
    namespace: Option<Namespace>,
) -> io::Result<Started> {
    let (init, passage) = match namespace.map(|namespace| namespace.split(folder)).transpose()? {
        Some((init, passage)) => (Some(init), passage),
        None => (None, None),
    };
    let (passage, arrivals) = passage.unzip();
    let restrict = move || {
        if let Some(passage) = &passage {
            passage.enter()?;
        }
        confinement.restrict_child()
    };
    // SAFETY: between fork and exec only async-signal-safe operations are allowed; `enter` and `restrict_child` only
    // make system calls on data that was prepared before the fork, and neither allocate nor take a lock.
    unsafe { command.pre_exec(restrict) };
    for _ in 1..TRIES {
        match spawn_once(&mut command, arrivals.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            other => return other.map(|started| Started { init, ..started }),
        }
    }
    spawn_once(&mut command, arrivals.as_ref()).map(|started| Started { init, ..started })
}

fn spawn_once(command: &mut Command, arrivals: Option<&Arrivals>) -> io::Result<Started> {
    let spawned = command.spawn();
    let Some(arrivals) = arrivals else {
        return spawned.map(|child| Started::of(Leader::of(&child), child));
    };
    // The process that was spawned has ended, and the worker is another one.
    let arrived = arrivals.next().map(Leader::new);
    match (spawned, arrived) {
        (Ok(child), arrived) => {
            Leader::of(&child).end();
            Ok(Started::of(arrived?, child))
        }
        (Err(error), Ok(mut leader)) => {
            leader.end();
            Err(error)
        }
        (Err(error), Err(_)) => Err(error),
    }
}

/// If the system runs out of memory before the watch notices, the system kills the worker and not the coordinator.
fn prefer_to_lose(leader: Pid) {
    #[cfg(target_os = "linux")]
    {
        // If this fails, the system chooses by size, which mostly has the same effect.
        let _kept = std::fs::write(format!("/proc/{}/oom_score_adj", leader), "1000");
    }
    #[cfg(not(target_os = "linux"))]
    let _unused = leader;
}
