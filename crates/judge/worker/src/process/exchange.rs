//! One exchange with a worker: a request goes out and a line comes back, within a timeout and the worker's limits.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_device::{memory_kills, memory_limit};

use super::WorkerProcess;
use crate::error::{WorkerError, is_killed, quoted};
use crate::pipes::Heard;
use crate::protocol::{Answer, Envelope, Failure, FailureKind, Outcome, Reply, Request};
use crate::watch::{self, Excess};

/// How long to wait for the last line of a worker that has ended, and for what one said before it refused a build.
const LAST_LINE: Duration = Duration::from_millis(100);

/// An exchange in progress.
pub(crate) struct Asked {
    /// The request's name.
    pub call: &'static str,
    id: u64,
    /// When the first byte was sent.
    begun: Instant,
    timeout: Duration,
    is_last: bool,
}

impl WorkerProcess {
    /// Sends a request and waits for the answer; also returns the time from the first byte sent to the last received.
    pub(super) fn exchange(&mut self, request: Request) -> Result<(Answer, Duration), WorkerError> {
        let (asked, request) = self.open(request)?;
        let answered = self.await_line(&asked, &request)?;
        let elapsed = asked.begun.elapsed();
        Ok((self.close(&asked, &answered)?, elapsed))
    }

    /// Begins an exchange: the worker goes on, and the line that is returned has to be sent.
    pub(crate) fn open(&mut self, request: Request) -> Result<(Asked, Vec<u8>), WorkerError> {
        let (call, id) = (request.name(), self.next_id);
        let (timeout, is_last) = (self.timeouts.with(&request), matches!(request, Request::Stop));
        self.next_id += 1;
        let mut line = serde_json::to_vec(&Envelope { id, request })
            .map_err(|error| self.garbage(call, error.to_string(), ""))?;
        line.push(b'\n');
        self.expect_silence(call)?;
        let begun = Instant::now();
        if let Some(held) = &mut self.held {
            held.resume();
        }
        let asked = Asked {
            call,
            id,
            begun,
            timeout,
            is_last,
        };
        Ok((asked, line))
    }

    /// Ends an exchange with the line that answers.
    pub(crate) fn close(&mut self, asked: &Asked, answered: &str) -> Result<Answer, WorkerError> {
        if !asked.is_last {
            self.stand_still()?;
        }
        if self.watch.is_overdue() {
            self.look(asked.call)?;
        }
        let reply: Reply = serde_json::from_str(answered)
            .map_err(|error| self.garbage(asked.call, error.to_string(), answered))?;
        if reply.id != asked.id {
            let reason = format!("it answers request {}, not {}", reply.id, asked.id);
            return Err(self.garbage(asked.call, reason, answered));
        }
        match reply.outcome {
            Outcome::Done(answer) => Ok(answer),
            Outcome::Failed { error } => Err(WorkerError::Failed(self.with_words(error))),
        }
    }

    /// A failure with what the worker wrote to standard error, if it refused a build: a compiler says there why.
    fn with_words(&self, failure: Failure) -> Failure {
        if failure.kind != FailureKind::Refused {
            return failure;
        }
        thread::sleep(LAST_LINE);
        let own = format!("{}/", self.folder().display());
        let said = self.standard_error.stderr_tail().replace(&own, "");
        if failure.message.contains(said.trim()) {
            return failure;
        }
        let message = failure.message + &quoted(&said);
        Failure { message, ..failure }
    }

    /// Fails if a line is there before the line is sent that it could answer. The first answer, the description, may come
    /// unasked: its number is checked instead.
    pub(crate) fn expect_silence(&mut self, call: &'static str) -> Result<(), WorkerError> {
        if self.next_id <= 2 {
            return Ok(());
        }
        match self.hear(Duration::ZERO) {
            Ok(Heard::Nothing) => Ok(()),
            Ok(Heard::End) => Err(self.died(call)),
            Ok(Heard::Line(line)) => {
                Err(self.garbage(call, "it came before it was asked for".to_owned(), &line))
            }
            Err(error) => Err(self.garbage(call, error.to_string(), "")),
        }
    }

    fn hear(&mut self, within: Duration) -> io::Result<Heard> {
        self.replies
            .as_mut()
            .map_or(Ok(Heard::End), |replies| replies.hear(within))
    }

    /// Sends bytes and waits for a line, checking the worker's limits meanwhile.
    pub(crate) fn await_line(&mut self, asked: &Asked, mut bytes: &[u8]) -> Result<String, WorkerError> {
        let (call, timeout) = (asked.call, asked.timeout);
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(asked.begun.elapsed());
            let slice = left.min(watch::INTERVAL);
            if bytes.is_empty() {
                match self.hear(slice) {
                    Ok(Heard::Line(line)) => return Ok(line),
                    Ok(Heard::End) => return Err(self.died(call)),
                    // A child of the worker that is still alive may hold its standard output open.
                    Ok(Heard::Nothing) if self.leader.has_ended() => {
                        return match self.hear(LAST_LINE) {
                            Ok(Heard::Line(line)) => Ok(line),
                            _ => Err(self.died(call)),
                        };
                    }
                    Ok(Heard::Nothing) => {}
                    Err(error) => return Err(self.garbage(call, error.to_string(), "")),
                }
            } else {
                let sent = self.requests.as_mut().map(|requests| requests.send(bytes, slice));
                match sent {
                    Some(Ok(rest)) => bytes = rest,
                    Some(Err(_)) | None => return Err(self.died(call)),
                }
            }
            if asked.begun.elapsed() >= timeout {
                self.kill();
                return Err(WorkerError::Late {
                    call,
                    limit: timeout,
                    stderr_tail: self.standard_error.stderr_tail(),
                });
            }
            if begun.elapsed() >= watch::INTERVAL {
                self.look(call)?;
            }
        }
    }

    /// Ends the worker if it has exceeded a limit.
    fn look(&mut self, call: &'static str) -> Result<(), WorkerError> {
        match self.watch.excess(&mut self.group, &self.standard_error) {
            None => Ok(()),
            Some(excess) => {
                self.kill();
                Err(self.over_limit(call, excess))
            }
        }
    }

    fn over_limit(&self, call: &'static str, excess: Excess) -> WorkerError {
        let stderr_tail = self.standard_error.stderr_tail();
        let Excess { what, limit, .. } = excess;
        if excess.is_of_memory {
            let what =
                format!("the worker took {what}, of {limit} that a worker may have here, and was killed");
            return WorkerError::OutOfMemory {
                call,
                what,
                stderr_tail,
            };
        }
        WorkerError::OverLimit {
            call,
            what,
            limit,
            stderr_tail,
        }
    }

    /// Whether the worker's first process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.leader.has_ended()
    }

    pub(crate) fn died(&mut self, call: &'static str) -> WorkerError {
        // Standard output is closed, so the process is gone or about to exit; it is killed if it lingers.
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut ended = self.leader.has_ended();
        while !ended && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
            ended = self.leader.has_ended();
        }
        self.kill();
        let status = self.leader.try_wait().filter(|_| ended);
        // Standard error is closed when it exceeds the limit, which may have killed the worker.
        match self.watch.of_output(&self.standard_error) {
            Some(excess) => self.over_limit(call, excess),
            None if is_killed(&status) && memory_kills() > self.memory_kills => WorkerError::OutOfMemory {
                call,
                what: match memory_limit() {
                    Some(bytes) => format!("the system killed the worker (limit {} MiB)", bytes >> 20),
                    None => "the system killed the worker".to_owned(),
                },
                stderr_tail: self.standard_error.stderr_tail(),
            },
            None => WorkerError::Died {
                call,
                status,
                stderr_tail: self.standard_error.stderr_tail(),
            },
        }
    }

    pub(crate) fn garbage(&mut self, call: &'static str, reason: String, line: &str) -> WorkerError {
        self.kill();
        let line = line.chars().take(200).collect();
        WorkerError::Garbage {
            call,
            reason,
            line,
            stderr_tail: self.standard_error.stderr_tail(),
        }
    }

    pub(crate) fn wrong_answer(&mut self, call: &'static str, answer: &Answer) -> WorkerError {
        let line = serde_json::to_string(answer).unwrap_or_default();
        self.garbage(call, "the answer belongs to another call".to_owned(), &line)
    }
}
