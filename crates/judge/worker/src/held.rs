//! A worker that the coordinator holds: it is stopped while nothing is asked of it, and the coordinator writes operands
//! into its memory and reads results out of it, call by call.
//!
//! A kernel in Python shares its process with the code that would otherwise load its operands and write its results,
//! and can replace that code. Held on a CPU, it gets the operands of a call as the coordinator's clock for this call
//! starts, and has no time to finish a result after the clock has stopped. On a GPU the operands have to be copied first and
//! the results afterwards: these copies have a clock of their own, and what they take one side longer is charged.

mod stepping;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_tensors::Tensor;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::WorkerError;
use crate::heat::{Heat, Load};
use crate::memory::{Pieces, read, write};
use crate::operand::Operand;
use crate::process::WorkerProcess;
use crate::protocol::{Failure, FailureKind, Sample};

/// The bytes that lie at the address that a worker names in its description.
const PROBE: &[u8; 8] = b"gauntlet";

/// The address of a probe in this process, for a worker's description. It lies in memory that can be written.
pub fn probe() -> u64 {
    static MEMORY: OnceLock<[AtomicU8; 8]> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| PROBE.map(AtomicU8::new));
    memory.as_ptr().expose_provenance() as u64
}

/// How long to wait until all threads of a worker have stopped. A thread that waits for a device is stopped only when it
/// wakes up.
const MAX_WAITING: Duration = Duration::from_secs(5);

/// How long to look again and again without sleeping. Most threads stop within some ten microseconds.
const AT_ONCE: Duration = Duration::from_micros(200);
/// How long to sleep between two looks after that.
const PAUSE: Duration = Duration::from_micros(100);

/// A call of a held worker.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The copy of the operands on which it computes.
    pub copy: usize,
    /// The number of its set of operands, in the order in which sets were loaded.
    pub set: usize,
    /// What is written into the worker's inputs just before the call; nothing if the values that were loaded are to stay. A set
    /// that still lies where the worker takes operands for a GPU from is not written again.
    pub operands: &'a [Operand],
    /// Whether the call was drawn to have its result read. The worker must not be able to tell before the call is over.
    pub is_drawn: bool,
    /// The load right before it. Either all calls of a request have one or none has.
    pub heat: Option<Heat>,
}

/// Calls that were clocked one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped {
    /// Each call as the worker reports it.
    pub samples: Vec<Sample>,
    /// Seconds of each call by the coordinator's clock: from before the worker goes on to when its word arrives that the
    /// call is over. The seconds for which it was held back beyond [`HOLD`](crate::protocol::HOLD) are taken off.
    pub seen: Vec<f64>,
    /// Seconds by the coordinator's clock that the worker took to copy the operands of each call to a GPU and its outputs
    /// back; empty where tensors lie in its own memory.
    pub moving: Vec<f64>,
    /// The outputs of the drawn calls, in the order of the calls.
    pub results: Vec<Vec<Tensor>>,
    /// The load before each call that had one.
    pub loads: Vec<Load>,
    /// The most seconds that the host says that it took for a call before it waited for the device; 0 unless calls are clocked on
    /// the device.
    pub host: f64,
    /// How many calls took the host longer than the hold before them.
    pub late: usize,
}

impl Stepped {
    fn for_calls(count: usize) -> Self {
        Self {
            samples: Vec::with_capacity(count),
            seen: Vec::with_capacity(count),
            moving: Vec::with_capacity(count),
            results: Vec::new(),
            loads: Vec::new(),
            host: 0.0,
            late: 0,
        }
    }
}

/// Where the tensors of calls lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Host,
    Gpu,
}

/// What the coordinator knows of a worker that it holds.
#[derive(Debug)]
pub(crate) struct Held {
    process: Pid,
    has_operands: bool,
    is_stopped: bool,
    /// The set that lies unsealed where the worker takes operands for a GPU from: it need not be written again.
    on_the_way: Option<usize>,
    /// Where tensors lie; not known before the first call after a load.
    location: Option<Location>,
    /// Whether it can be put under load right before a call.
    pub heats: bool,
    /// Whether its kernel is given row-major tensors whatever the task's layout is.
    pub row_major: bool,
}

impl Held {
    /// A process, if the system lets this program read and write its memory: the probe lies at the address.
    pub fn tried(process: Pid, address: u64) -> io::Result<Self> {
        let mut found = [0; PROBE.len()];
        let pieces = Pieces::whole(address as i64, PROBE.len());
        read(process, &pieces, &mut found)?;
        if &found != PROBE {
            return Err(io::Error::other(
                "the worker's probe is not where the worker says",
            ));
        }
        write(process, &pieces, PROBE)?;
        Ok(Self {
            process,
            has_operands: false,
            is_stopped: false,
            on_the_way: None,
            location: None,
            heats: false,
            row_major: false,
        })
    }

    /// Holds the worker from now on: it has loaded operands.
    pub fn begin(&mut self) {
        self.has_operands = true;
        self.on_the_way = None;
        self.location = None;
        self.stop();
    }

    fn process(&self) -> Pid {
        self.process
    }

    /// Stops the worker's process group. Does nothing before operands are loaded: until then there is nothing that the worker
    /// could do in advance.
    pub fn stop(&mut self) {
        if self.has_operands && !self.is_stopped {
            // If the group is gone, the next request says so.
            self.is_stopped = killpg(self.process, Signal::SIGSTOP).is_ok();
        }
    }

    /// Lets the worker go on.
    pub fn resume(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            let _gone = killpg(self.process, Signal::SIGCONT);
        }
    }
}

impl WorkerProcess {
    /// Whether the coordinator holds the worker: it is stopped while nothing is asked of it, and [steps](Self::step).
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether it is held and can be put under load right before a call.
    pub fn heats(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.heats)
    }

    /// Stops holding the worker, which then loads operands and times its calls by itself.
    pub fn release(&mut self) {
        if let Some(held) = &mut self.held {
            held.resume();
        }
        self.held = None;
    }

    /// Why the worker is not held though its description offers that: the system does not let this program reach the
    /// worker's memory, or the worker has closed it.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Stops the worker, and waits until the stop has reached all threads of its processes. Returns the seconds of processor
    /// time that these have used.
    fn seconds_when_stopped(&mut self) -> Result<f64, WorkerError> {
        if let Some(held) = &mut self.held {
            held.stop();
        }
        let begun = Instant::now();
        loop {
            // Before each look: a process that is about to stop may still start another.
            if self.group.count_if_changed().is_none() {
                let why = "the system does not say which processes it has";
                return Err(self.cannot_hold(FailureKind::Broken, why));
            }
            if let Some(seconds) = self.group.seconds_if_stopped() {
                return Ok(seconds);
            }
            let waited = begun.elapsed();
            if waited > MAX_WAITING {
                let why = format!("a process of the worker still runs {MAX_WAITING:?} after it was stopped");
                return Err(self.cannot_hold(FailureKind::BadRequest, &why));
            }
            if waited < AT_ONCE {
                thread::yield_now();
            } else {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Stops the worker, and waits until none of its processes runs. Processes that are ending are waited for too: freeing
    /// their memory keeps the machine busy, and the other side must not be timed meanwhile.
    pub(crate) fn stand_still(&mut self) -> Result<(), WorkerError> {
        if self.held.as_ref().is_some_and(|held| held.has_operands) {
            self.seconds_when_stopped()?;
        }
        Ok(())
    }

    /// Ends a held worker that the coordinator cannot go on with: `kind` says whether the worker or the system is the cause.
    fn cannot_hold(&mut self, kind: FailureKind, why: &str) -> WorkerError {
        self.kill();
        WorkerError::Failed(Failure {
            kind,
            message: format!("the coordinator cannot hold the worker: {why}"),
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
