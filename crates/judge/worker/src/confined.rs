//! A confined process that does not speak the worker protocol: it answers lines.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::census::Group;
use crate::children;
use crate::confinement::{Confinement, Init};
use crate::launch::{Launched, Lifeline, WorkerCommand, launch};
use crate::leader::Leader;
use crate::limits::Limits;
use crate::pipes::{Heard, Replies, StandardError};
use crate::watch::{self, Watch};

/// How long to wait for the end of all processes.
const LINGERING: Duration = Duration::from_millis(500);

/// A process that is confined and watched like a worker. Dropping it kills it with its whole group, and removes its folder.
pub struct Confined {
    leader: Leader,
    init: Option<Init>,
    replies: Replies,
    standard_error: Arc<StandardError>,
    watch: Watch,
    group: Group,
    ended: bool,
    folder: TempDir,
    _lifeline: Lifeline,
}

/// Why there is no line.
#[derive(Debug)]
pub enum Silence {
    /// It has not answered in time.
    Late,
    /// It has ended.
    Gone,
    /// It took more than it may: what, and how much is allowed.
    OverLimit(String),
    /// What it wrote is no line.
    Garbage(String),
}

impl Confined {
    /// Starts a program in a new folder inside `folders`, which `fill` fills first; the folder is its current one, and `stdin`
    /// its standard input.
    ///
    /// # Errors
    /// If the folder cannot be made or filled, or the program cannot be started.
    pub fn start(
        command: &WorkerCommand,
        folders: &Path,
        fill: impl FnOnce(&Path) -> io::Result<()>,
        stdin: OwnedFd,
        limits: Limits,
    ) -> io::Result<Self> {
        children::adopt_orphans();
        let folder = tempfile::Builder::new().prefix("process-").tempdir_in(folders)?;
        fill(folder.path())?;
        let confinement = Confinement::new(folders, folder.path(), &limits, &command.allowances, None)?;
        let Launched { started, lifeline } = launch(command, folder.path(), confinement, Stdio::from(stdin))?;
        let (Some(stdout), Some(stderr)) = (started.stdout, started.stderr) else {
            return Err(io::Error::other("it has no pipes"));
        };
        let id = started.leader.pid();
        children::enter(id.as_raw());
        let standard_error = Arc::new(StandardError::default());
        let listener = Arc::clone(&standard_error);
        thread::Builder::new().spawn(move || listener.listen(stderr, limits.standard_error))?;
        Ok(Self {
            watch: Watch::new(limits, vec![folder.path().to_owned()]),
            group: Group::new(id, started.init.as_ref().map(Init::id)),
            leader: started.leader,
            init: started.init,
            replies: Replies::new(stdout)?,
            standard_error,
            ended: false,
            folder,
            _lifeline: lifeline,
        })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for a line, and checks its limits meanwhile.
    ///
    /// # Errors
    /// If there is none in time, or the process is gone or exceeds a limit.
    pub fn line(&mut self, timeout: Duration) -> Result<String, Silence> {
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            match self.replies.hear(left.min(watch::INTERVAL)) {
                Ok(Heard::Line(line)) => return Ok(line),
                Ok(Heard::End) => return Err(self.gone()),
                Ok(Heard::Nothing) if left.is_zero() => return Err(Silence::Late),
                // A child of it that is still alive may hold its standard output open.
                Ok(Heard::Nothing) if self.leader.has_ended() => return Err(self.gone()),
                Ok(Heard::Nothing) => self.look()?,
                Err(error) => return Err(Silence::Garbage(error.to_string())),
            }
        }
    }

    fn look(&mut self) -> Result<(), Silence> {
        match self.watch.excess(&mut self.group, &self.standard_error) {
            None => Ok(()),
            Some(excess) => Err(Silence::OverLimit(format!(
                "{}, of {} allowed",
                excess.what, excess.limit
            ))),
        }
    }

    fn gone(&self) -> Silence {
        match self.watch.of_output(&self.standard_error) {
            Some(excess) => Silence::OverLimit(excess.what),
            None => Silence::Gone,
        }
    }

    /// Ends it and all processes that it has started; its folder stays.
    pub fn stop(&mut self) {
        self.kill();
    }

    /// Ends it, and returns the end of its standard error.
    pub fn end(mut self) -> String {
        self.kill();
        self.standard_error.stderr_tail()
    }

    fn kill(&mut self) {
        // Only once: after the process has been waited for, its number may belong to another process.
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        children::end(&mut self.leader, self.init.as_mut(), Instant::now() + LINGERING);
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Confined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Confined").finish_non_exhaustive()
    }
}
