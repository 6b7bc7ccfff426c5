//! This machine as an engine: one job at a time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_queue::this_machine;
use gauntlet_worker::Program;
use jiff::Timestamp;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::engine::{Batch, Ending, Engine, EngineError};

/// How often jobs are looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a job that was told to end may take for it.
const FAREWELL: Duration = Duration::from_secs(20);

/// The exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// Starts `gauntlet job` as a process in a group of its own, which outlives this program: what it publishes is recorded by whoever
/// looks next.
#[derive(Debug)]
pub struct Here {
    program: Program,
    /// Where jobs leave records.
    ledger: PathBuf,
    running: BTreeMap<String, Running>,
    /// What became of jobs since the last one was started.
    ended: BTreeMap<String, (ExitStatus, PathBuf)>,
}

#[derive(Debug)]
struct Running {
    ticket: String,
    child: Child,
    log: PathBuf,
}

impl Here {
    /// This machine, whose jobs are run by this program and leave records in this ledger.
    pub fn new(program: Program, ledger: PathBuf) -> Self {
        Self {
            program,
            ledger,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn spawn(&mut self, ticket: &str, batch: &Batch<'_>) -> Result<String, EngineError> {
        let failed =
            |place: &Path, error: std::io::Error| EngineError(format!("{}: {error}", place.display()));
        let folder = batch.results.join("attempts");
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        let log = folder.join(format!("{ticket}.{}.job.log", Timestamp::now().as_millisecond()));
        let file = fs::File::create(&log).map_err(|error| failed(&log, error))?;
        let path = batch.ticket_folder.join(format!("{ticket}.json"));
        let mut command = Command::new(&self.program.file);
        command
            .args(self.program.with(["job".into(), path.into_os_string()]))
            .arg("--out")
            .arg(batch.results)
            .env("GAUNTLET_LEDGER", &self.ledger)
            // Neither an interrupt at the terminal nor the end of this program is the job's.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let child = command
            .spawn()
            .map_err(|error| failed(&self.program.file, error))?;
        let job = child.id().to_string();
        let running = Running {
            ticket: ticket.to_owned(),
            child,
            log,
        };
        self.running.insert(job.clone(), running);
        Ok(job)
    }
}

impl Engine for Here {
    fn name(&self) -> &'static str {
        "this machine"
    }

    fn place(&self, number: usize) -> String {
        match number {
            0 => this_machine(),
            further => format!("{}-{further}", this_machine()),
        }
    }

    fn pause(&self) -> Duration {
        PAUSE
    }

    fn late(&self) -> Duration {
        Duration::ZERO
    }

    fn start(&mut self, batch: &Batch<'_>) -> Result<Vec<String>, EngineError> {
        self.ended.clear();
        let started = batch.tickets.iter().map(|ticket| self.spawn(ticket, batch));
        started.collect()
    }

    fn alive(&mut self) -> Result<BTreeMap<String, String>, EngineError> {
        for (job, running) in &mut self.running {
            if let Ok(Some(status)) = running.child.try_wait() {
                self.ended.insert(job.clone(), (status, running.log.clone()));
            }
        }
        self.running.retain(|job, _| !self.ended.contains_key(job));
        let jobs = self.running.iter();
        Ok(jobs
            .map(|(job, running)| (running.ticket.clone(), job.clone()))
            .collect())
    }

    fn ending(&mut self, job: &str) -> Option<Ending> {
        let (status, log) = self.ended.remove(job)?;
        let said = fs::read_to_string(log).unwrap_or_default();
        Some(Ending {
            said: match said.trim() {
                "" => status.to_string(),
                said => said.to_owned(),
            },
            node: None,
            was_told: status.code() == Some(INTERRUPTED),
        })
    }

    /// Tells a job and its command to end, waits for that, and ends them if they do not.
    fn cancel(&mut self, job: &str) -> Result<(), EngineError> {
        let Some(mut running) = self.running.remove(job) else {
            return Ok(());
        };
        let group = Pid::from_raw(i32::try_from(running.child.id()).unwrap_or(i32::MAX));
        let _told = killpg(group, Signal::SIGTERM);
        let began = Instant::now();
        while began.elapsed() < FAREWELL {
            if !matches!(running.child.try_wait(), Ok(None)) {
                return Ok(());
            }
            sleep(PAUSE);
        }
        let _ended = killpg(group, Signal::SIGKILL);
        let _waited = running.child.wait();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose jobs run this script.
    fn here(folder: &Path, script: &str) -> Here {
        let file = folder.join("job.sh");
        fs::write(&file, script).unwrap();
        let mut program = Program::new("/bin/sh");
        program.arguments = vec![file.into_os_string()];
        Here::new(program, folder.join("ledger.sqlite"))
    }

    fn start(here: &mut Here, folder: &Path) -> String {
        let started = here.start(&Batch {
            tickets: &["one".to_owned()],
            is_of_checks: false,
            avoided: &[],
            ticket_folder: folder,
            results: folder,
        });
        started.unwrap().remove(0)
    }

    #[test]
    fn a_job_that_ended_says_why_and_one_that_is_cancelled_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut dying = here(folder.path(), "echo no memory >&2; exit 3");
        let job = start(&mut dying, folder.path());
        while !dying.alive().unwrap().is_empty() {
            sleep(PAUSE);
        }
        let ending = dying.ending(&job).unwrap();
        assert_eq!((ending.said.as_str(), ending.was_told), ("no memory", false));
        assert!(dying.ending(&job).is_none(), "it is told once");

        let mut long = here(folder.path(), "exec sleep 600");
        let job = start(&mut long, folder.path());
        assert_eq!(long.alive().unwrap().get("one"), Some(&job));
        long.cancel(&job).unwrap();
        assert!(long.alive().unwrap().is_empty());
        assert!(!Path::new(&format!("/proc/{job}")).exists());
    }
}
