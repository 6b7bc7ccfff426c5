//! A worker's three pipes, none of which may block the coordinator or fill its memory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A line longer than this is garbage, not a reply: the longest honest one, a thousand samples with phases, is
/// under a megabyte.
const LONGEST_LINE: u64 = 16 << 20;

/// How much of the end of a worker's standard error is kept.
const KEPT: usize = 4096;

/// The pipe to a worker's standard input, which the worker may never read.
pub(crate) struct Requests(ChildStdin);

impl Requests {
    pub fn new(stdin: ChildStdin) -> io::Result<Self> {
        // Only this end of the pipe is non-blocking: the worker's end stays as it is.
        fcntl(&stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self(stdin))
    }

    /// Writes as much as the pipe takes within this time, and returns the rest.
    pub fn send<'a>(&mut self, mut line: &'a [u8], within: Duration) -> io::Result<&'a [u8]> {
        let mut has_waited = false;
        while !line.is_empty() {
            match self.0.write(line) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !has_waited => {
                    let wait = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
                    // If the wait is interrupted or times out, the next write reports it.
                    let _ready = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)], wait);
                    has_waited = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(line)
    }
}

/// Passes on each line of standard output until its end, or until a line is malformed.
pub(crate) fn forward_lines(stdout: impl Read, lines: &SyncSender<io::Result<String>>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = String::new();
        let message = match reader.by_ref().take(LONGEST_LINE).read_line(&mut line) {
            Ok(0) => return,
            Ok(length) if length as u64 == LONGEST_LINE => Err(io::Error::other(format!(
                "a line longer than {} MiB",
                LONGEST_LINE >> 20
            ))),
            // The line was cut off by the worker's death, which the caller reports.
            Ok(_) if !line.ends_with('\n') => return,
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        let last = message.is_err();
        if lines.send(message).is_err() || last {
            return;
        }
    }
}

/// How much a worker has written to standard error, and the end of it.
#[derive(Debug, Default)]
pub(crate) struct StandardError {
    volume: AtomicU64,
    tail: Mutex<Vec<u8>>,
}

impl StandardError {
    /// Reads standard error to its end, or until it exceeds `limit`; then closes it.
    pub fn listen(&self, mut stderr: impl Read, limit: u64) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = stderr.read(&mut buffer) {
            let heard = &buffer[..length];
            {
                let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&heard[heard.len().saturating_sub(KEPT)..]);
                let excess = tail.len().saturating_sub(KEPT);
                tail.drain(..excess);
            }
            if self.volume.fetch_add(length as u64, Ordering::Relaxed) + length as u64 > limit {
                return;
            }
        }
    }

    /// Bytes written so far.
    pub fn volume(&self) -> u64 {
        self.volume.load(Ordering::Relaxed)
    }

    /// The last bytes written.
    pub fn stderr_tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_and_too_much_is_not_heard() {
        let standard_error = StandardError::default();
        let said: Vec<u8> = (0..200_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        standard_error.listen(said.as_slice(), u64::MAX);
        assert_eq!(standard_error.volume(), 800_000);
        let kept = standard_error.tail.lock().unwrap().clone();
        assert_eq!(kept, said[said.len() - KEPT..]);

        let standard_error = StandardError::default();
        standard_error.listen(io::repeat(b'x'), 1 << 20);
        assert!((1 << 20..2 << 20).contains(&standard_error.volume()));
        assert_eq!(standard_error.stderr_tail(), "x".repeat(KEPT));
    }
}
