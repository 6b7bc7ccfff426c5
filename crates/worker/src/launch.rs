//! How a worker is started.

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
    /// What it is allowed beyond what every worker is.
    pub allowances: Allowances,
}

impl WorkerCommand {
    /// A program with arguments, held as every worker is.
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            environment: BTreeMap::new(),
            allowances: Allowances::default(),
        }
    }

    /// The same run by a tool that looks into it: a program with arguments, after which it expects the command.
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

/// Variables by which programs find the place for what they write on the way; all lead to the worker's own folder.
const FOLDERS: [&str; 4] = ["TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"];

/// Profilers keep files of their own there.
const HOME: &str = "HOME";

/// Lines that a worker may be ahead of its reader; it waits once there are more.
const LINES_AHEAD: usize = 4;

/// A worker just started.
pub(crate) struct Launched {
    pub child: Child,
    /// The lines of its standard output.
    pub lines: Receiver<io::Result<String>>,
    pub lifeline: Lifeline,
}

/// Keeps the thread that started a worker: the worker is killed when that ends, and so with this program, however it
/// ends.
pub(crate) struct Lifeline(
    #[expect(dead_code, reason = "the thread waits for it to be dropped")] SyncSender<()>,
);

/// Starts a worker in `folder`, in a process group of its own, confined.
pub(crate) fn launch(
    command: &WorkerCommand,
    folder: &Path,
    confinement: Confinement,
) -> io::Result<Launched> {
    let mut command = prepare(command, folder);
    let (started, start) = sync_channel(1);
    let (sender, lines) = sync_channel(LINES_AHEAD);
    let (lifeline, end) = sync_channel(0);
    // What holds this thread holds the worker that it starts, and it alone.
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
    // SAFETY: between fork and exec only what may be called in a signal handler is allowed, and `restrict_child` only
    // makes system calls on what was prepared before; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || confinement.restrict_child()) };
    spawn_unless_busy(command)
}

/// How often a program that is still being written is tried, and how long to wait in between.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// A program that was written a moment ago may be held open for writing for as long as another process, forked just
/// then, takes to start its own program.
fn spawn_unless_busy(command: &mut Command) -> io::Result<Child> {
    for _ in 1..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            other => return other,
        }
    }
    command.spawn()
}

/// Should the system's memory run out before the watch sees it, the worker is to go and not the coordinator.
fn prefer_to_lose(child: &Child) {
    #[cfg(target_os = "linux")]
    {
        // Without it, the system chooses by size, which mostly comes to the same.
        let _kept = std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
    }
    #[cfg(not(target_os = "linux"))]
    let _unused = child;
}
