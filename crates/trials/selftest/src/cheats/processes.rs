//! Cheats that use system features that a kernel does not need. Each stops by itself if it is not stopped.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_worker::Program;
use gauntlet_worker::protocol::Failure;
use nix::errno::Errno;
use nix::unistd::Pid;

use super::thefts::thwarted;
use super::trial;
use super::work::{Trick, Work};

/// The lifetime of a child that is not killed.
const CHILD: Duration = Duration::from_secs(15);

/// A child that keeps a core busy.
pub fn burn() -> io::Result<()> {
    let end = Instant::now() + CHILD;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    Ok(())
}

/// A child that sleeps.
pub fn sleep() -> io::Result<()> {
    thread::sleep(CHILD);
    Ok(())
}

/// Starts this program again as a child that does `deed`.
fn child(deed: &str) -> io::Result<Command> {
    let program = Program::this()?;
    let mut command = Command::new(&program.file);
    command
        .args(program.with(["worker", "cheat", deed]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

/// Performs an action once, at a build; exits with the reason if it is kept from it.
pub struct AtBuild {
    deed: fn() -> io::Result<()>,
    what: &'static str,
    done: bool,
}

impl AtBuild {
    /// `what` names the action in the message of a worker that is kept from it.
    pub fn new(what: &'static str, deed: fn() -> io::Result<()>) -> Self {
        Self {
            deed,
            what,
            done: false,
        }
    }
}

impl Trick for AtBuild {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.done, true)
            && let Err(error) = (self.deed)()
        {
            thwarted(&format!("{}: {error}", self.what));
        }
        Ok(())
    }
}

/// Starts a child on every core that keeps it busy.
pub fn burn_in_children() -> io::Result<()> {
    for _ in 0..cores() {
        // The child is not waited for: it is left to the system.
        let _left = child("burn")?.spawn()?;
    }
    Ok(())
}

/// The same, with each child in its own process group, so that it neither ends with the worker nor counts as part of
/// it.
pub fn leave_children() -> io::Result<()> {
    for _ in 0..cores() {
        let _left = child("burn")?.process_group(0).spawn()?;
    }
    Ok(())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Children of a fork bomb: far more than any honest program starts, and few enough not to harm the machine.
const BOMB: usize = 500;

/// Starts children until it fails or has started them all.
pub fn fork_bomb() -> io::Result<()> {
    let mut children = Vec::new();
    let mut start = || -> io::Result<()> {
        for _ in 0..BOMB {
            // Lighter than this program, so that the bomb completes before a timeout.
            children.push(Command::new("sleep").arg("15").stdin(Stdio::null()).spawn()?);
        }
        Ok(())
    };
    let started = start();
    for child in &mut children {
        // All children must be gone, so errors are ignored.
        let _killed = child.kill();
        let _reaped = child.wait();
    }
    started
}

/// Keeps a child that does nothing, as an honest program may.
pub fn keep_a_helper() -> io::Result<()> {
    for _ in 0..2 {
        thread::spawn(|| thread::sleep(CHILD));
    }
    let mut helper = child("sleep")?.spawn()?;
    thread::spawn(move || helper.wait());
    Ok(())
}

/// Opens a connection to the discard port of this machine, which stands for a connection to the outside; no program
/// listens there.
pub fn phone_home() -> io::Result<()> {
    match TcpStream::connect(("127.0.0.1", 9)) {
        // A refused connection shows that the network can be reached.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// Writes outside its own folder.
pub fn write_outside() -> io::Result<()> {
    let place = Path::new("..").join(format!("cheat-was-here-{}", std::process::id()));
    std::fs::write(&place, "a result from yesterday")?;
    std::fs::remove_file(&place)
}

/// Bytes of memory used above the trial's limit.
const OVER: u64 = 512 << 20;

/// How long the memory is held, so that periodic checks notice it.
const HELD: Duration = Duration::from_millis(500);

/// Allocates memory and touches it, so that it becomes resident.
pub fn exhaust_memory() -> io::Result<()> {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    let piece = 64 << 20;
    for _ in 0..(trial::MEMORY + OVER) / piece {
        taken.push(vec![1; piece as usize]);
    }
    thread::sleep(HELD);
    std::hint::black_box(&taken);
    Ok(())
}

/// Larger than any limit on one file; most of it is a hole, which occupies no disk space.
const GIANT: u64 = 1 << 44;

/// Makes a file that would fill the disk.
pub fn fill_the_disk() -> io::Result<()> {
    let place = "giant";
    let made = File::create(place)?.set_len(GIANT);
    std::fs::remove_file(place)?;
    made
}

/// Ignores a signal to a process that has ended, and reports one that is not permitted.
pub fn unless_gone(process: Pid, error: Errno) {
    if error != Errno::ESRCH {
        thwarted(&format!("process {process} cannot be stopped: {error}"));
    }
}
