//! A worker's three pipes, none of which may block the coordinator or fill its memory.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A line longer than this is garbage, not a reply: the longest honest one, a thousand samples with phases, is
/// under a megabyte.
const MAX_LINE: usize = 16 << 20;

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

/// What comes from a worker's standard output.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A whole line, without its break.
    Line(String),
    /// Nothing, or not yet a whole line.
    Nothing,
    /// The end. A line that the worker's death has cut off is left out.
    End,
}

/// The pipe from a worker's standard output, read by the thread that waits for the line: another thread between them would
/// have to be woken too, and the coordinator's clock would show it.
pub(crate) struct Replies {
    stdout: ChildStdout,
    /// What one system call has read.
    piece: Box<[u8]>,
    read: Vec<u8>,
    /// Bytes at the beginning of `read` that hold no line break.
    searched: usize,
    /// The most bytes of a line.
    max_line: usize,
}

impl Replies {
    pub fn new(stdout: ChildStdout) -> io::Result<Self> {
        Self::with_lines_of(stdout, MAX_LINE)
    }

    /// Takes lines of at most this many bytes.
    pub fn with_lines_of(stdout: ChildStdout, max_line: usize) -> io::Result<Self> {
        // Only this end of the pipe is non-blocking.
        fcntl(&stdout, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            stdout,
            piece: vec![0; 64 << 10].into(),
            read: Vec::new(),
            searched: 0,
            max_line,
        })
    }

    /// Waits this long for a line.
    ///
    /// # Errors
    /// If the line is too long, or, as [`io::ErrorKind::InvalidData`], no UTF-8.
    pub fn hear(&mut self, within: Duration) -> io::Result<Heard> {
        let begun = Instant::now();
        loop {
            if let Some(line) = self.line()? {
                return Ok(Heard::Line(line));
            }
            match self.stdout.read(&mut self.piece) {
                Ok(0) => return Ok(Heard::End),
                Ok(read) => self.read.extend_from_slice(&self.piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = within.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        return Ok(Heard::Nothing);
                    }
                    // Rounded up to whole milliseconds, so that the wait does not end early again and again.
                    let wait = PollTimeout::try_from(left + Duration::from_millis(1));
                    // If the wait is interrupted, the next read says that there is nothing.
                    let _ready = poll(
                        &mut [PollFd::new(self.stdout.as_fd(), PollFlags::POLLIN)],
                        wait.unwrap_or(PollTimeout::MAX),
                    );
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let end = self.read[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.searched = self.read.len();
            return self.fits(self.searched).map(|()| None);
        };
        self.fits(self.searched + end)?;
        let rest = self.read.split_off(self.searched + end + 1);
        let mut line = std::mem::replace(&mut self.read, rest);
        self.searched = 0;
        line.pop();
        String::from_utf8(line)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn fits(&self, length: usize) -> io::Result<()> {
        if length > self.max_line {
            let long = format!("a line longer than {} MiB", self.max_line >> 20);
            return Err(io::Error::other(long));
        }
        Ok(())
    }

    /// A last line without a break, once the end was heard.
    pub fn cut_off(&mut self) -> String {
        self.searched = 0;
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
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
    fn lines_come_one_by_one_and_a_cut_one_does_not() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "printf 'one\\ntwo\\ncut'; read -r _; printf ' off\\nlost'"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut replies = Replies::new(child.stdout.take().unwrap()).unwrap();
        let long = Duration::from_secs(60);
        let mut heard = |within| replies.hear(within).unwrap();
        assert!(matches!(heard(long), Heard::Line(line) if line == "one"));
        assert!(matches!(heard(long), Heard::Line(line) if line == "two"));
        assert!(matches!(heard(Duration::ZERO), Heard::Nothing));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(matches!(heard(long), Heard::Line(line) if line == "cut off"));
        assert!(matches!(heard(long), Heard::End));
        child.wait().unwrap();
    }

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
