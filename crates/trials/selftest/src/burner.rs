//! A noisy neighbour of our own: a process that burns one core for 30 % of the time, to measure beside.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_worker::Program;

/// The name under which `gauntlet-selftest worker cheat` serves it.
pub const NAME: &str = "neighbour";

/// One period, and the part of it in which the process burns.
const PERIOD: Duration = Duration::from_millis(100);
const BURNING: Duration = Duration::from_millis(30);

/// The neighbour as a child process; it ends when this is dropped, or with this process.
pub struct Burner(Child);

impl Burner {
    /// Starts it. `program` is `gauntlet-selftest`.
    pub fn start(program: &Program) -> io::Result<Self> {
        let child = Command::new(&program.file)
            .args(program.with(["worker", "cheat", NAME]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        // It may have ended already.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// What the child does until its standard input ends.
pub fn serve() -> io::Result<()> {
    let listener = thread::spawn(|| io::stdin().lock().read_to_end(&mut Vec::new()));
    while !listener.is_finished() {
        let start = Instant::now();
        while start.elapsed() < BURNING {
            std::hint::spin_loop();
        }
        thread::sleep(PERIOD.saturating_sub(start.elapsed()));
    }
    Ok(())
}
