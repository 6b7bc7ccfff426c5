//! A program of the user's own, such as a contestant: it talks in lines and is not confined, but it ends with all that it started.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::census::Group;
use crate::confined::Silence;
use crate::confinement::{Allowances, Confinement, Init};
use crate::launch::{Launched, Lifeline, in_group, start};
use crate::leader::Leader;
use crate::limits::Limits;
use crate::pipes::{Heard, Replies, StandardError};
use crate::{children, environment};

/// How long to wait for the end of all processes, and of what they say.
const LINGERING: Duration = Duration::from_millis(500);

/// How often to look whether the program has ended: something that it started may hold its standard output open.
const INTERVAL: Duration = Duration::from_millis(100);

/// A running program. Dropping it kills it with all that it started: its group, and where the system allows it a namespace of
/// processes of its own, which ends with this program too, however that ends.
pub struct Trusted {
    leader: Leader,
    init: Option<Init>,
    group: Group,
    requests: Option<Sender<Vec<u8>>>,
    replies: Replies,
    standard_error: Arc<StandardError>,
    listener: JoinHandle<()>,
    ended: bool,
    _lifeline: Lifeline,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, unless it had to be killed.
    pub status: Option<ExitStatus>,
    /// The last 4 KiB that it wrote to standard error.
    pub stderr_tail: String,
}

impl Trusted {
    /// Starts a program in a folder, with the variables of this process but those whose names speak of secrets. Its lines may
    /// have this many bytes.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Path, arguments: &[OsString], folder: &Path, max_line: usize) -> io::Result<Self> {
        children::adopt_orphans();
        let limits = Limits::default();
        let confinement = Confinement::new(folder, folder, &limits, &Allowances::all(), None)?;
        let mut command = in_group(program, arguments, folder);
        command.envs(environment::without_secrets()).stdin(Stdio::piped());
        let Launched { started, lifeline } = start(command, folder, confinement)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (started.stdin, started.stdout, started.stderr)
        else {
            return Err(io::Error::other("it has no pipes"));
        };
        children::enter(started.leader.pid().as_raw());
        let standard_error = Arc::new(StandardError::default());
        let heard = Arc::clone(&standard_error);
        let group = Group::new(started.leader.pid(), started.init.as_ref().map(Init::id));
        Ok(Self {
            leader: started.leader,
            group,
            init: started.init,
            requests: Some(writer(stdin)?),
            replies: Replies::with_lines_of(stdout, max_line)?,
            standard_error,
            listener: thread::Builder::new().spawn(move || heard.listen(stderr, limits.standard_error))?,
            ended: false,
            _lifeline: lifeline,
        })
    }

    /// Sends a line, without waiting for the program to read it. A program that no longer reads is no error: it may have said
    /// all that it has to say.
    pub fn send(&mut self, line: &str) {
        if let Some(requests) = &self.requests {
            let _gone = requests.send(format!("{line}\n").into_bytes());
        }
    }

    /// For how long its first thread was ready to go on and had no processor, as on a machine that others keep busy. `None` where the
    /// system does not report it, or it has ended.
    pub fn waited(&self) -> Option<Duration> {
        let seconds = self.group.first_thread_waited_seconds()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Waits for a line. The last one may lack its break.
    ///
    /// # Errors
    /// If there is none in time, it is too long or no UTF-8, or the program has ended.
    pub fn line(&mut self, timeout: Duration) -> Result<String, Silence> {
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            // Asked first: what a program wrote before its end is there to be heard afterwards.
            let has_ended = self.leader.has_ended();
            match self.replies.hear(if has_ended {
                Duration::ZERO
            } else {
                left.min(INTERVAL)
            }) {
                Ok(Heard::Line(line)) => return Ok(line),
                Ok(Heard::End) => return self.last_line(),
                Ok(Heard::Nothing) if has_ended => return self.last_line(),
                Ok(Heard::Nothing) if left.is_zero() => return Err(Silence::Late),
                Ok(Heard::Nothing) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(Silence::Garbage(error.to_string()));
                }
                Err(error) => return Err(Silence::OverLimit(error.to_string())),
            }
        }
    }

    fn last_line(&mut self) -> Result<String, Silence> {
        match self.replies.cut_off() {
            line if line.is_empty() => Err(Silence::Gone),
            line => Ok(line),
        }
    }

    /// Closes its standard input, waits this long for it to end by itself, and ends it with all that it started.
    pub fn end(mut self, patience: Duration) -> Ended {
        self.requests = None;
        let deadline = Instant::now() + patience;
        while !self.leader.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        let by_itself = self.leader.has_ended();
        self.kill();
        let deadline = Instant::now() + LINGERING;
        while !self.listener.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        Ended {
            status: self.leader.try_wait().filter(|_| by_itself),
            stderr_tail: self.standard_error.stderr_tail(),
        }
    }

    fn kill(&mut self) {
        // Only once: after the process has been waited for, its number may belong to another process.
        if !std::mem::replace(&mut self.ended, true) {
            children::end(&mut self.leader, self.init.as_mut(), Instant::now() + LINGERING);
        }
    }
}

/// Writes lines to a program that may read them late or never, while another thread hears what it says. Ends when the program
/// does, or when there is nothing more to write.
fn writer(mut stdin: ChildStdin) -> io::Result<Sender<Vec<u8>>> {
    let (requests, lines) = mpsc::channel::<Vec<u8>>();
    thread::Builder::new().spawn(move || {
        while let Ok(line) = lines.recv()
            && stdin.write_all(&line).is_ok()
        {}
    })?;
    Ok(requests)
}

impl Drop for Trusted {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Trusted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Trusted").finish_non_exhaustive()
    }
}
