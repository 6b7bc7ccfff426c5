//! Why a worker gave no answer, with the end of its standard error.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use gauntlet_device::memory_limit;
use nix::sys::signal::Signal;
use thiserror::Error;

use crate::protocol::{Failure, FailureKind};
use crate::timeouts::{FIRST_CALL_TIMEOUT, Timeouts};

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
    #[error(
        "the worker gave no reply to `{call}` within {limit:?} and was killed{}{}", longer(.call), quoted(.stderr_tail)
    )]
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
    /// The worker wanted more memory than this machine or job has, and was killed.
    #[error(
        "out of memory in `{call}`: {what}; give the job more memory, or make the case smaller{}", quoted(.stderr_tail)
    )]
    OutOfMemory {
        /// The call.
        call: &'static str,
        /// Who killed it, and what is allowed.
        what: String,
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

    /// Whether the process is gone, and might not be if everything were done once more: what wants more memory than there is
    /// would want it again.
    pub fn may_be_an_accident(&self) -> bool {
        self.is_death() && !matches!(self, Self::OutOfMemory { .. })
    }

    /// Whether it says nothing about the kernel: the machine lacks memory, a file or a device, or a limit for first calls was too short.
    pub fn is_of_the_machine(&self) -> bool {
        match self {
            Self::Start { .. } | Self::OutOfMemory { .. } => true,
            // It comes from outside: from the system when memory is short, or from a person.
            Self::Died { status, .. } => is_killed(status),
            Self::Late { call, .. } => Timeouts::is_first_call(call),
            Self::Failed(failure) => failure.kind == FailureKind::Broken,
            Self::Garbage { .. } | Self::OverLimit { .. } => false,
        }
    }
}

pub(crate) fn is_killed(status: &Option<ExitStatus>) -> bool {
    status.and_then(|status| status.signal()) == Some(Signal::SIGKILL as i32)
}

/// What lengthens the limit of a first call.
fn longer(call: &str) -> String {
    let is_first_call = Timeouts::is_first_call(call);
    let setting = || format!("; allow more for a first call by {FIRST_CALL_TIMEOUT} (seconds)");
    is_first_call.then(setting).unwrap_or_default()
}

/// What is known of the memory that a killed worker shared.
fn memory() -> String {
    let limit = memory_limit().map_or(String::new(), |bytes| {
        format!(": {} MiB are allowed here", bytes >> 20)
    });
    format!(", as the system does when memory is short{limit}")
}

fn describe_status(status: &Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "its exit status is not known".to_owned();
    };
    match (
        status.signal().and_then(|signal| Signal::try_from(signal).ok()),
        status.code(),
    ) {
        (Some(Signal::SIGKILL), _) => format!("killed by SIGKILL{}", memory()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_from_outside_and_a_first_call_that_takes_long_are_the_machines() {
        let died = |signal| WorkerError::Died {
            call: "prepare",
            status: Some(ExitStatus::from_raw(signal)),
            stderr_tail: String::new(),
        };
        assert!(died(Signal::SIGKILL as i32).is_of_the_machine());
        assert!(
            died(Signal::SIGKILL as i32)
                .to_string()
                .contains("memory is short")
        );
        assert!(!died(Signal::SIGSEGV as i32).is_of_the_machine());
        let short = WorkerError::OutOfMemory {
            call: "prepare",
            what: "2 MiB".to_owned(),
            stderr_tail: String::new(),
        };
        assert!(short.is_of_the_machine() && short.is_death() && !short.may_be_an_accident());
        let late = |call| WorkerError::Late {
            call,
            limit: Duration::from_secs(1),
            stderr_tail: String::new(),
        };
        assert!(late("prepare").is_of_the_machine() && late("build").is_of_the_machine());
        assert!(late("prepare").to_string().contains(FIRST_CALL_TIMEOUT));
        assert!(!late("time").is_of_the_machine() && !late("time").to_string().contains(FIRST_CALL_TIMEOUT));
    }
}
