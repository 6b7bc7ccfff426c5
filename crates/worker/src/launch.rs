//! Starts workers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::confinement::{Allowances, Confinement};
use crate::pipes::forward_lines;

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
}

impl WorkerCommand {
    /// A program with arguments, confined like every worker.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            environment: BTreeMap::new(),
            allowances: Allowances::default(),
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
        }
    }
}

/// Variables that tell programs where to write temporary and cached files; all point to the worker's own folder.
const FOLDERS: [&str; 4] = ["TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"];

/// Profilers keep their own files there.
const HOME: &str = "HOME";

/// Lines that a worker may be ahead of the coordinator; further lines block its output.
const LINES_AHEAD: usize = 4;

/// A worker just started.
pub(crate) struct Launched {
    pub child: Child,
    /// The lines of its standard output.
    pub lines: Receiver<io::Result<String>>,
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
) -> io::Result<Launched> {
    let mut command = prepare(command, folder);
    let (started, start) = sync_channel(1);
    let (sender, lines) = sync_channel(LINES_AHEAD);
    let (lifeline, end) = sync_channel(0);
    // The restrictions of this thread apply to the worker that it starts, and to nothing else.
    thread::Builder::new().name("worker".to_owned()).spawn(move || {
        let confinement = Arc::new(confinement);
        let child = confinement
            .restrict_thread()
            .and_then(|()| spawn(&mut command, &confinement));
        match child {
            Err(error) => {
                let _nobody_waits = started.send(Err(error));
            }
            Ok(mut child) => {
                let stdout = child.stdout.take();
                let _nobody_waits = started.send(Ok(child));
                if let Some(stdout) = stdout {
                    forward_lines(stdout, &sender);
                }
                drop(sender);
                let _cut = end.recv();
            }
        }
    })?;
    let child = start
        .recv()
        .map_err(|_| io::Error::other("the thread that starts it failed"))??;
    prefer_to_lose(&child);
    Ok(Launched {
        child,
        lines,
        lifeline: Lifeline(lifeline),
    })
}

fn prepare(command: &WorkerCommand, folder: &Path) -> Command {
    let mut prepared = Command::new(&command.program);
    prepared
        .args(&command.arguments)
        .envs(FOLDERS.map(|variable| (variable, folder)))
        .envs(command.allowances.instruments.then_some((HOME, folder)))
        .envs(&command.environment)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    prepared
}

fn spawn(command: &mut Command, confinement: &Arc<Confinement>) -> io::Result<Child> {
    let confinement = Arc::clone(confinement);
    // SAFETY: between fork and exec only async-signal-safe operations are allowed; `restrict_child` only makes system
    // calls on data that was prepared before the fork, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || confinement.restrict_child()) };
    spawn_unless_busy(command)
}

/// How often to try starting a program that is still open for writing, and how long to wait in between.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Starts a program that was written a moment ago. Another process that was forked during the write holds the file open
/// for writing until it has started its own program.
fn spawn_unless_busy(command: &mut Command) -> io::Result<Child> {
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            other => return other,
        }
    }
    command.spawn()
}

/// If the system runs out of memory before the watch notices, the system kills the worker and not the coordinator.
fn prefer_to_lose(child: &Child) {
    #[cfg(target_os = "linux")]
    {
        // If this fails, the system chooses by size, which mostly has the same effect.
        let _kept = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
    }
    #[cfg(not(target_os = "linux"))]
    let _unused = child;
}
