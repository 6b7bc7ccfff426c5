//! Why a worker gave no answer, with its last words.

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
        /// Why.
        source: io::Error,
    },
    /// The process ended during a call.
    #[error("the worker died in `{call}` ({}){}", describe_status(.status), quoted(.last_words))]
    Died {
        /// The call.
        call: &'static str,
        /// How it ended.
        status: Option<ExitStatus>,
        /// The end of its standard error.
        last_words: String,
    },
    /// No reply came in time; the worker was killed.
    #[error("the worker gave no reply to `{call}` within {limit:?} and was killed{}", quoted(.last_words))]
    Late {
        /// The call.
        call: &'static str,
        /// The limit.
        limit: Duration,
        /// The end of its standard error.
        last_words: String,
    },
    /// What came was not a reply of the protocol; the worker was killed.
    #[error("the worker answered `{call}` with what is not a reply ({reason}): {line:?}{}", quoted(.last_words))]
    Garbage {
        /// The call.
        call: &'static str,
        /// What is wrong with it.
        reason: String,
        /// The beginning of the line.
        line: String,
        /// The end of its standard error.
        last_words: String,
    },
    /// It took more than it may; it was killed.
    #[error(
        "the worker took more than it may in `{call}` ({what}, of {limit} allowed) and was killed{}", quoted(.last_words)
    )]
    OverLimit {
        /// The call.
        call: &'static str,
        /// What, and how much of it.
        what: String,
        /// How much it may take.
        limit: String,
        /// The end of its standard error.
        last_words: String,
    },
    /// The worker said that it could not do it; it lives on.
    #[error("{}", .0.message)]
    Failed(Failure),
}

impl WorkerError {
    /// Whether the process is gone, so that another may be tried.
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

fn quoted(last_words: &str) -> String {
    match last_words.trim() {
        "" => String::new(),
        words => format!("; its last words: {words}"),
    }
}
