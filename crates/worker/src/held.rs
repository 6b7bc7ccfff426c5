//! A worker that the coordinator holds: it is stopped while nothing is asked of it, and the coordinator writes operands
//! into its memory and reads results out of it, call by call.
//!
//! A kernel in Python shares its process with the code that would otherwise load its operands and write its results,
//! and can replace that code. Held on a CPU, it gets the operands of a call as the coordinator's clock for this call
//! starts, and has no time to finish a result after the clock has stopped. On a GPU the operands have to be copied first and
//! the results afterwards: these copies have a clock of their own, and what they take one side longer is charged.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_formats::{Tensor, TensorSpec};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::WorkerError;
use crate::heat::{Heat, Load};
use crate::memory::{pieces, read, write};
use crate::operand::Operand;
use crate::process::{Asked, WorkerProcess};
use crate::protocol::{Answer, Failure, FailureKind, Place, Request, Sample, Turn};

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
const MOST_WAITING: Duration = Duration::from_secs(5);

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
    /// The load right before it.
    pub heat: Option<Heat>,
}

/// Calls that were clocked one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Stepped {
    /// Each call as the worker reports it.
    pub samples: Vec<Sample>,
    /// Seconds of each call by the coordinator's clock: from before the worker goes on to when its word arrives that the
    /// call is over.
    pub seen: Vec<f64>,
    /// Seconds by the coordinator's clock that the worker took to copy the operands of each call to a GPU and its outputs
    /// back; empty where tensors lie in its own memory.
    pub moving: Vec<f64>,
    /// The outputs of the drawn calls, in the order of the calls.
    pub results: Vec<Vec<Tensor>>,
    /// The load before each call that had one.
    pub loads: Vec<Load>,
}

/// What the coordinator knows of a worker that it holds.
#[derive(Debug)]
pub(crate) struct Held {
    process: Pid,
    has_operands: bool,
    is_stopped: bool,
    /// The set that lies unsealed where the worker takes operands for a GPU from: it need not be written again.
    on_the_way: Option<usize>,
    /// Whether it can be put under load right before a call.
    pub heats: bool,
    /// Whether its kernel is given row-major tensors whatever the task's layout is.
    pub row_major: bool,
}

impl Held {
    /// A process, if the system lets this program read and write its memory: the probe lies at the address.
    pub fn tried(process: Pid, address: u64) -> io::Result<Self> {
        let mut found = [0; PROBE.len()];
        let pieces = [(address, PROBE.len())];
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
            heats: false,
            row_major: false,
        })
    }

    /// Holds the worker from now on: it has loaded operands.
    pub fn begin(&mut self) {
        self.has_operands = true;
        self.on_the_way = None;
        self.stop();
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

    /// Makes calls one by one, and clocks each. The worker prepares each call by itself; then it is stopped with all of its
    /// processes, its operands are written, and the clock runs from when it goes on until it says that the call is over.
    /// The results of drawn calls are read then, again while it is stopped. Outputs hold the byte `poison` before.
    ///
    /// Where tensors lie on a GPU, copying takes longer than many calls. So the worker says when the operands are on the GPU,
    /// goes on once more, and says that the call is over before it copies the outputs: the clock of a call runs between
    /// these, and another one before and after.
    ///
    /// A load before a call comes before its operands are written. On a GPU it comes after they have been copied there, since
    /// that takes long: they are sealed until the load is over.
    ///
    /// # Errors
    /// If the worker is not held, names no place that can be read or written, or has a process that runs while it is stopped.
    pub fn step(
        &mut self,
        calls: &[Call<'_>],
        outputs: &[TensorSpec],
        poison: u8,
    ) -> Result<Stepped, WorkerError> {
        let copies = calls.iter().map(|call| call.copy).collect();
        let heat: Vec<f64> = calls.iter().filter_map(|call| Some(call.heat?.seconds)).collect();
        let (asked, request) = self.open(Request::Step {
            copies,
            poison,
            heat,
            scope: self.scope,
        })?;
        let mut stepped = Stepped {
            samples: Vec::with_capacity(calls.len()),
            seen: Vec::with_capacity(calls.len()),
            moving: Vec::with_capacity(calls.len()),
            results: Vec::new(),
            loads: Vec::new(),
        };
        let mut since = Instant::now();
        let mut line = self.await_line(&asked, &request)?;
        for call in calls {
            let mut turn = self.turn(&asked, &line)?;
            let mut load = None;
            if let Turn::Heating { .. } = turn {
                load = Some(self.load_after(&asked, (since, &line), call.heat, false)?);
                line = self.await_line(&asked, &[])?;
                turn = self.turn(&asked, &line)?;
            }
            let Turn::Ready { inputs, sealed } = turn else {
                return Err(self.out_of_turn(&asked, &line));
            };
            let key = call.heat.filter(|_| sealed).map(|heat| heat.key);
            let on_the_way = self.held.as_mut().and_then(|held| held.on_the_way.take());
            if !call.operands.is_empty() && (sealed || on_the_way != Some(call.set)) {
                self.write_operands(call, key, |name| inputs.get(name))?;
            }
            let mut moving = None;
            let mut seen;
            since = Instant::now();
            (line, seen) = self.clocked_line(&asked, b"\n")?;
            turn = self.turn(&asked, &line)?;
            let mut sent = 0.0;
            if let (Turn::Heating { .. }, Some(key)) = (&turn, key) {
                sent = seen;
                load = Some(self.load_after(&asked, (since, &line), call.heat, true)?);
                (line, seen) = self.clocked_line(&asked, format!("{key:016x}\n").as_bytes())?;
                turn = self.turn(&asked, &line)?;
            }
            if load.is_some() != call.heat.is_some() {
                return Err(self.out_of_turn(&asked, &line));
            }
            if let Turn::Placed { .. } = turn {
                let placed = sent + seen;
                (line, seen) = self.clocked_line(&asked, b"\n")?;
                let over = Instant::now();
                let Turn::Over { .. } = self.turn(&asked, &line)? else {
                    return Err(self.out_of_turn(&asked, &line));
                };
                line = self.await_line(&asked, &[])?;
                moving = Some(placed + over.elapsed().as_secs_f64());
                turn = self.turn(&asked, &line)?;
                let is_plain = !sealed && !call.operands.is_empty();
                if let Some(held) = self.held.as_mut().filter(|_| is_plain) {
                    held.on_the_way = Some(call.set);
                }
            } else if sealed {
                return Err(self.out_of_turn(&asked, &line));
            }
            // Tensors lie on the GPU in all calls or in none.
            let moved_before = moving.map_or(0, |_| stepped.seen.len());
            if stepped.moving.len() != moved_before {
                return Err(self.out_of_turn(&asked, &line));
            }
            // At once: whatever the worker has not finished must not be finished now.
            if let Some(held) = self.held.as_mut().filter(|_| call.is_drawn) {
                held.stop();
            }
            let Turn::Done {
                call: seconds,
                outputs: places,
            } = turn
            else {
                return Err(self.out_of_turn(&asked, &line));
            };
            stepped.seen.push(seen);
            stepped.moving.extend(moving);
            stepped.loads.extend(load);
            stepped.samples.push(self.sample(&asked, seconds, &line)?);
            if call.is_drawn {
                stepped.results.push(self.read_outputs(outputs, &places)?);
            }
            since = Instant::now();
            self.go_on(&asked, b"\n")?;
            line = self.await_line(&asked, &[])?;
        }
        match self.close(&asked, &line)? {
            Answer::Stepped => Ok(stepped),
            other => Err(self.wrong_answer(asked.call, &other)),
        }
    }

    /// Lets the worker go on with a line until its next one; also returns the seconds until then.
    fn clocked_line(&mut self, asked: &Asked, sent: &[u8]) -> Result<(String, f64), WorkerError> {
        let begun = Instant::now();
        self.go_on(asked, sent)?;
        let line = self.await_line(asked, &[])?;
        Ok((line, begun.elapsed().as_secs_f64()))
    }

    /// A line as the worker's turn. Any other line has to be a failure.
    pub(crate) fn turn(&mut self, asked: &Asked, line: &str) -> Result<Turn, WorkerError> {
        match serde_json::from_str(line) {
            Ok(turn) => Ok(turn),
            Err(_) => {
                let answer = self.close(asked, line)?;
                Err(self.wrong_answer(asked.call, &answer))
            }
        }
    }

    pub(crate) fn out_of_turn(&mut self, asked: &Asked, line: &str) -> WorkerError {
        self.garbage(
            asked.call,
            "it is not the worker's turn for this".to_owned(),
            line,
        )
    }

    fn sample(&mut self, asked: &Asked, seconds: f64, line: &str) -> Result<Sample, WorkerError> {
        let sample = Sample {
            call: seconds,
            kernel: None,
            clock: None,
            phases: Default::default(),
        };
        if sample.is_possible() {
            return Ok(sample);
        }
        Err(self.garbage(asked.call, "no such time can be".to_owned(), line))
    }

    /// Lets the worker go on with the line that it waits for. The line comes first, so that the worker finds it as soon as it
    /// runs.
    fn go_on(&mut self, asked: &Asked, line: &[u8]) -> Result<(), WorkerError> {
        let sent = self
            .requests
            .as_mut()
            .map(|requests| requests.send(line, Duration::ZERO));
        if !matches!(sent, Some(Ok([]))) {
            return Err(self.died(asked.call));
        }
        if let Some(held) = &mut self.held {
            held.resume();
        }
        Ok(())
    }

    fn write_operands<'p>(
        &mut self,
        call: &Call<'_>,
        key: Option<u64>,
        place: impl Fn(&str) -> Option<&'p Place>,
    ) -> Result<(), WorkerError> {
        // The same for every call: a worker sees how long it is stopped, and could tell from it which calls are drawn.
        let before = self.seconds_when_stopped()?;
        let row_major = self.held.as_ref().is_some_and(|held| held.row_major);
        for operand in call.operands {
            let name = &operand.tensor.spec.name;
            let place = place(name)
                .ok_or_else(|| cannot_hold(&format!("the worker does not say where it keeps `{name}`")))?;
            self.in_memory("write operands", |process| {
                let pieces = operand.pieces(place, row_major)?;
                match key {
                    Some(key) => write(process, &pieces, &operand.sealed(key, place, &pieces)?),
                    None => write(process, &pieces, &operand.tensor.bytes),
                }
            })?;
        }
        // Nothing that is stopped starts a process.
        if self.seconds_when_stopped()? == before {
            return Ok(());
        }
        Err(cannot_hold(
            "processes of the worker ran while they were stopped and operands were written",
        ))
    }

    fn read_outputs(&mut self, outputs: &[TensorSpec], places: &[Place]) -> Result<Vec<Tensor>, WorkerError> {
        self.seconds_when_stopped()?;
        if places.len() != outputs.len() {
            let (named, count) = (places.len(), outputs.len());
            return Err(cannot_hold(&format!(
                "the worker names {named} of {count} outputs"
            )));
        }
        let read_one = |(spec, place): (&TensorSpec, &Place)| {
            let mut tensor = Tensor::filled(spec.clone(), 0);
            self.in_memory("read a result", |process| {
                read(process, &pieces(place, spec)?, &mut tensor.bytes)
            })?;
            Ok(tensor)
        };
        outputs.iter().zip(places).map(read_one).collect()
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
                return Err(cannot_hold("the system does not say which processes it has"));
            }
            if let Some(seconds) = self.group.seconds_if_stopped() {
                return Ok(seconds);
            }
            let waited = begun.elapsed();
            if waited > MOST_WAITING {
                return Err(cannot_hold("a process of the worker does not stay stopped"));
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

    fn in_memory<T>(&self, what: &str, work: impl FnOnce(Pid) -> io::Result<T>) -> Result<T, WorkerError> {
        let held = self.held.as_ref();
        let process = held
            .map(|held| held.process)
            .ok_or_else(|| io::Error::other("it is not held"));
        let done = process.and_then(work);
        done.map_err(|error| cannot_hold(&format!("{what}: {error}")))
    }
}

/// The failure of a held worker.
fn cannot_hold(why: &str) -> WorkerError {
    WorkerError::Failed(Failure {
        kind: FailureKind::BadRequest,
        message: format!("the coordinator cannot hold the worker: {why}"),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
