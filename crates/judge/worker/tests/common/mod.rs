//! Workers that are shell scripts.

#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    reason = "each test file uses its own part"
)]

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use gauntlet_worker::protocol::VERSION;
use gauntlet_worker::{Limits, Standing, Timeouts, WorkerCommand, WorkerError, WorkerProcess, safeguards};

/// A worker's answer to the first request, as a line without its end.
pub struct Description;

pub const DESCRIPTION: Description = Description;

impl fmt::Display for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            r#"{{"id":1,"answer":"description","protocol":{VERSION},"worker":"shell","device":"host","details":{{}}}}"#
        )
    }
}

/// The folder for the workers of these tests.
pub fn workers_folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

pub fn shell(script: &str) -> WorkerCommand {
    WorkerCommand::new("/bin/sh", ["-c".into(), script.into()])
}

pub fn start(script: &str) -> Result<WorkerProcess, WorkerError> {
    start_within(script, Limits::default())
}

pub fn start_within(script: &str, limits: Limits) -> Result<WorkerProcess, WorkerError> {
    // A worker that answers is waited for, however busy the machine is.
    let timeouts = Timeouts::default().longer(10);
    WorkerProcess::start_within(&shell(script), workers_folder(), timeouts, limits).map(|(worker, _)| worker)
}

/// Starts a worker that describes itself and is then expected to be late.
pub fn start_late(script: &str) -> WorkerProcess {
    let timeouts = Timeouts {
        build: Duration::from_secs(1),
        compute: Duration::from_millis(200),
        ..Timeouts::default().longer(10)
    };
    let limits = Limits::default();
    let (worker, _) =
        WorkerProcess::start_within(&shell(script), workers_folder(), timeouts, limits).unwrap();
    worker
}

/// Runs a script that describes itself and continues; returns what it writes into the file `said` in its folder.
pub fn said(script: &str) -> String {
    let script = format!("read line; {{ {script}\n}} >said 2>&1; echo '{DESCRIPTION}'; read line");
    let worker = start(&script).unwrap();
    std::fs::read_to_string(worker.folder().join("said")).unwrap_or_default()
}

/// Waits until a condition holds that is certain to hold in the end, even on a busy machine.
pub fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(240) {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Whether a safeguard is active here; prints a note if not.
pub fn has(what: &str) -> bool {
    let safeguard = safeguards().into_iter().find(|found| found.what == what).unwrap();
    let active = matches!(safeguard.standing, Standing::Active(_));
    if !active {
        println!(
            "skipped, since `{what}` does not hold here: {:?}",
            safeguard.standing
        );
    }
    active
}
