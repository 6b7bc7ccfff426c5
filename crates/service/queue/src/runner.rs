//! Runs the tickets of a queue on this machine, one at a time.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_worker::Program;
use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::QueueError;
use crate::job::host;
use crate::queue::{Queue, Rest};
use crate::ticket::Ticket;
use crate::worker::this_worker;

/// How often a waiting runner looks for a ticket, and a working one at its job.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// How long a job that was told to end may take for it.
const FAREWELL: Duration = Duration::from_secs(20);

/// Takes tickets from a queue and starts `gauntlet job` for each. The job is a process in a group of its own, which outlives
/// the runner: what it publishes is recorded by whoever looks next.
#[derive(Debug)]
pub struct Runner {
    queue: Arc<Queue>,
    program: Program,
    worker: String,
    place: String,
    ledger: PathBuf,
}

impl Runner {
    /// A runner of this machine's tickets, whose jobs are run by this program and leave records in this ledger.
    pub fn new(queue: Arc<Queue>, program: Program, ledger: PathBuf) -> Self {
        Self {
            queue,
            program,
            worker: this_worker(),
            place: host(),
            ledger,
        }
    }

    /// Runs tickets until the thread's process ends.
    pub fn run_forever(&self) {
        loop {
            // A queue that cannot be used now may be usable later: its disk may have room again.
            if !matches!(self.run_one(), Ok(Some(_))) {
                sleep(PAUSE);
            }
        }
    }

    /// Runs the next ticket, if one waits and none runs here, and returns its id.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn run_one(&self) -> Result<Option<String>, QueueError> {
        let Some((ticket, attempt)) = self.queue.lease(&self.worker, &self.place, Timestamp::now())? else {
            return Ok(None);
        };
        let log = self.log(&ticket, attempt);
        match self.start(&ticket, &log) {
            Ok(job) => self.watch(job, &ticket, attempt, &log)?,
            Err(error) => self
                .queue
                .end_attempt(&ticket.id, attempt, &error.to_string(), true)?,
        }
        Ok(Some(ticket.id))
    }

    /// Whether this machine is given no tickets now, and why.
    ///
    /// # Errors
    /// If the queue cannot be read.
    pub fn rest(&self) -> Result<Option<Rest>, QueueError> {
        self.queue.rest(&self.place, Timestamp::now())
    }

    fn log(&self, ticket: &Ticket, attempt: u32) -> PathBuf {
        let name = format!("{}.{attempt}.job.log", ticket.id);
        self.queue.results().join("attempts").join(name)
    }

    fn start(&self, ticket: &Ticket, log: &PathBuf) -> Result<Child, QueueError> {
        let folder = log.parent().unwrap_or(log);
        fs::create_dir_all(folder).map_err(QueueError::at(folder))?;
        let log = fs::File::create(log).map_err(QueueError::at(log))?;
        let mut command = Command::new(&self.program.file);
        let words = self
            .program
            .with(["job".into(), self.queue.ticket_file(&ticket.id).into_os_string()]);
        command.args(words).arg("--out").arg(self.queue.results());
        command.env("GAUNTLET_LEDGER", &self.ledger);
        // Neither an interrupt at the terminal nor the end of this program is the job's.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().map_err(QueueError::at(&self.program.file))
    }

    fn watch(&self, mut job: Child, ticket: &Ticket, attempt: u32, log: &PathBuf) -> Result<(), QueueError> {
        let mut renewed = Instant::now();
        let status = loop {
            if let Ok(Some(status)) = job.try_wait() {
                break status;
            }
            let is_wanted = if renewed.elapsed() < RENEWAL {
                !self.queue.is_cancelled(&ticket.id).unwrap_or(false)
            } else {
                renewed = Instant::now();
                self.queue
                    .renew(&ticket.id, attempt, Timestamp::now())
                    .unwrap_or(true)
            };
            if !is_wanted {
                end(&mut job);
                return self.queue.end_attempt(
                    &ticket.id,
                    attempt,
                    "its client, or another attempt, was first",
                    false,
                );
            }
            sleep(PAUSE);
        };
        match self.queue.published(&ticket.id) {
            Some(result) => self.queue.record(attempt, &result).map(|_| ()),
            None => {
                let said = fs::read_to_string(log).unwrap_or_default();
                let said = match said.trim() {
                    "" => status.to_string(),
                    said => said.to_owned(),
                };
                let is_interrupted = status.code() == Some(130);
                self.queue
                    .end_attempt(&ticket.id, attempt, &said, !is_interrupted)
            }
        }
    }
}

/// Tells a job and its command to end, and ends them if they do not.
fn end(job: &mut Child) {
    let group = Pid::from_raw(i32::try_from(job.id()).unwrap_or(i32::MAX));
    let _told = killpg(group, Signal::SIGTERM);
    let began = Instant::now();
    while began.elapsed() < FAREWELL {
        if !matches!(job.try_wait(), Ok(None)) {
            return;
        }
        sleep(PAUSE);
    }
    let _ended = killpg(group, Signal::SIGKILL);
    let _waited = job.wait();
}
