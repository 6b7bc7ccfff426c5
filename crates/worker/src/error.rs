//! Why a worker gave no answer, with the end of its standard error.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use thiserror::Error;

use crate::protocol::Failure;

/// Why a worker gave no answer.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The program could not be started.
    #[error(
        "the worker {program} could not be started: {source}; check that the program exists and is executable, and that \
         its folder can be written"
    )]
    Start {
        /// The program.
        program: String,
        /// The error.
        source: io::Error,
    },
    /// The process ended during a call.
    #[error("the worker died in `{call}` ({}){}", describe_status(.status), quoted(.stderr_tail))]
    Died {
        /// The call.
        call: &'static str,
        /// How it ended.
        status: Option<ExitStatus>,
        /// The end of its standard error.
        stderr_tail: String,
    },
    /// No reply came in time; the worker was killed.
    #[error("the worker gave no reply to `{call}` within {limit:?} and was killed{}", quoted(.stderr_tail))]
    Late {
        /// The call.
        call: &'static str,
        /// The limit.
        limit: Duration,
        /// The end of its standard error.
        stderr_tail: String,
    },
    /// The worker's line is not a reply of the protocol; the worker was killed.
    #[error("the worker answered `{call}` with what is not a reply ({reason}): {line:?}{}", quoted(.stderr_tail))]
    Garbage {
        /// The call.
        call: &'static str,
        /// The reason.
        reason: String,
        /// The beginning of the line.
        line: String,
        /// The end of its standard error.
        stderr_tail: String,
    },
    /// The worker exceeded a limit; it was killed.
    #[error(
        "the worker took more than it may in `{call}` ({what}, of {limit} allowed) and was killed{}", quoted(.stderr_tail)
    )]
    OverLimit {
        /// The call.
        call: &'static str,
        /// The resource and the amount used.
        what: String,
        /// The limit.
        limit: String,
        /// The end of its standard error.
        stderr_tail: String,
    },
    /// The worker reported that it could not serve the request, and keeps running; or the coordinator could not hold it, and
    /// killed it.
    #[error("{}", .0.message)]
    Failed(Failure),
}

impl WorkerError {
    /// Whether the process is gone, so that the caller may start another.
    pub fn is_death(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

fn describe_status(status: &Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "its exit status is not known".to_owned();
    };
    match (
        status.signal().and_then(|signal| Signal::try_from(signal).ok()),
        status.code(),
    ) {
        (Some(signal), _) => format!("killed by {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
    }
}

/// The end of standard error as a part of a sentence; nothing if nothing was written.
pub(crate) fn quoted(stderr_tail: &str) -> String {
    match stderr_tail.trim() {
        "" => String::new(),
        words => format!("; the end of its standard error: {words}"),
    }
}
