//! The calls of a `step`, one after the other. [`Turn`] lists the lines of each.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use gauntlet_tensors::{Tensor, TensorSpec};
use nix::unistd::Pid;

use super::{Call, Held, Location, Stepped};
use crate::error::WorkerError;
use crate::heat::Load;
use crate::memory::{Pieces, read, write, write_changed};
use crate::operand::Operand;
use crate::process::{Asked, WorkerProcess};
use crate::protocol::{Answer, FailureKind, HOLD, Place, Request, Sample, Scope, Turn};

/// A line of the worker, and the coordinator's clock around it.
struct Line {
    text: String,
    /// When the line was sent that this one answers.
    since: Instant,
    /// Seconds from then until this line arrived.
    seconds: f64,
}

impl Line {
    /// A line that arrives now.
    fn answering(since: Instant, text: String) -> Self {
        let seconds = since.elapsed().as_secs_f64();
        Self { text, since, seconds }
    }
}

/// A worker that is ready for a call.
struct Ready {
    inputs: BTreeMap<String, Place>,
    /// The key that seals the operands, if the load comes after they are written.
    key: Option<u64>,
    /// The load, if it came before this.
    load: Option<Load>,
}

/// A call that is over, as the coordinator clocked it.
struct Clocked {
    /// The worker's last turn of this call, and its line.
    last: Turn,
    line: String,
    /// Seconds of the call, without what it was held back for beyond [`HOLD`].
    seen: f64,
    /// Seconds that the host says that it took for the call; 0 unless it was clocked on the device.
    host: f64,
    /// Seconds of copying operands to a GPU and outputs back; none where tensors lie on the host.
    moving: Option<f64>,
}

impl WorkerProcess {
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
    /// If the worker is not held, names no place that can be read or written, says anything out of turn, or has a process
    /// that runs while it is stopped: each of these ends the worker. A failure that the worker itself reports does not.
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
            hold: self.hold,
        })?;
        let mut stepped = Stepped::for_calls(calls.len());
        let since = Instant::now();
        let text = self.await_line(&asked, &request)?;
        let mut line = Line::answering(since, text);
        for call in calls {
            let (clocked, load) = self.make_call(&asked, call, line)?;
            let (sample, places) = self.last_turn(&asked, clocked.last, &clocked.line)?;
            if call.is_drawn {
                stepped.results.push(self.read_outputs(&asked, outputs, &places)?);
            }
            stepped.samples.push(sample);
            stepped.seen.push(clocked.seen);
            stepped.late += usize::from(clocked.host > self.hold);
            stepped.host = stepped.host.max(clocked.host);
            stepped.moving.extend(clocked.moving);
            stepped.loads.extend(load);
            line = self.next_line(&asked, b"\n")?;
        }
        match self.close(&asked, &line.text)? {
            Answer::Stepped => Ok(stepped),
            other => Err(self.wrong_answer(asked.call, &other)),
        }
    }

    /// Makes a call whose first line has come. A drawn call leaves the worker stopped.
    fn make_call(
        &mut self,
        asked: &Asked,
        call: &Call<'_>,
        first: Line,
    ) -> Result<(Clocked, Option<Load>), WorkerError> {
        let Ready {
            inputs,
            key,
            mut load,
        } = self.until_ready(asked, call, first)?;
        self.hand_over(asked, call, key, &inputs)?;
        let mut line = self.next_line(asked, b"\n")?;
        let mut copying = 0.0;
        if let Some(key) = key {
            copying = line.seconds;
            let Turn::Heating { .. } = self.turn(asked, &line.text)? else {
                return Err(self.out_of_turn(asked, &line.text));
            };
            load = Some(self.load_after(asked, (line.since, &line.text), call.heat, true)?);
            line = self.next_line(asked, format!("{key:016x}\n").as_bytes())?;
        }
        let clocked = self.until_over(asked, call, line, copying)?;
        self.note_location(asked, call, key, &clocked)?;
        Ok((clocked, load))
    }

    /// Waits for the places of the inputs. If the worker begins a load first, also waits for its end.
    fn until_ready(&mut self, asked: &Asked, call: &Call<'_>, first: Line) -> Result<Ready, WorkerError> {
        let mut text = first.text;
        let mut turn = self.turn(asked, &text)?;
        let mut load = None;
        if let Turn::Heating { .. } = turn {
            load = Some(self.load_after(asked, (first.since, &text), call.heat, false)?);
            text = self.await_line(asked, &[])?;
            turn = self.turn(asked, &text)?;
        }
        match turn {
            // A load that is asked for comes once, and none comes unasked.
            Turn::Ready { inputs, sealed }
                if usize::from(sealed) + usize::from(load.is_some()) == usize::from(call.heat.is_some()) =>
            {
                let key = call.heat.filter(|_| sealed).map(|heat| heat.key);
                Ok(Ready { inputs, key, load })
            }
            _ => Err(self.out_of_turn(asked, &text)),
        }
    }

    /// Finishes clocking a call. Its line says either that the call is over or that its operands are on the GPU; copying them
    /// there took `copying` seconds before that line was awaited.
    fn until_over(
        &mut self,
        asked: &Asked,
        call: &Call<'_>,
        line: Line,
        copying: f64,
    ) -> Result<Clocked, WorkerError> {
        // A worker that is stopped first gains no time by a line that takes long to parse. Before the first call after a load
        // it is not known whether the call is over now.
        if self.location() == Some(Location::Host) {
            self.stop_if_drawn(call);
        }
        let turn = self.turn(asked, &line.text)?;
        let Turn::Placed { .. } = turn else {
            self.stop_if_drawn(call);
            return Ok(Clocked {
                last: turn,
                line: line.text,
                seen: line.seconds,
                host: 0.0,
                moving: None,
            });
        };
        let copying = copying + line.seconds;
        let over = self.next_line(asked, b"\n")?;
        let ended = Instant::now();
        let Turn::Over { host, .. } = self.turn(asked, &over.text)? else {
            return Err(self.out_of_turn(asked, &over.text));
        };
        let line = self.await_line(asked, &[])?;
        let moving = copying + ended.elapsed().as_secs_f64();
        let is_held_back = self.scope == Scope::Device;
        let longer = if is_held_back { self.hold - HOLD } else { 0.0 };
        self.stop_if_drawn(call);
        Ok(Clocked {
            last: self.turn(asked, &line)?,
            line,
            seen: over.seconds - longer,
            host: if is_held_back { host } else { 0.0 },
            moving: Some(moving),
        })
    }

    /// Notes where the tensors of a call lie, and whether its operands stay where they were written.
    fn note_location(
        &mut self,
        asked: &Asked,
        call: &Call<'_>,
        key: Option<u64>,
        clocked: &Clocked,
    ) -> Result<(), WorkerError> {
        let location = clocked.moving.map_or(Location::Host, |_| Location::Gpu);
        // Tensors lie on the GPU in all calls or in none. Sealed operands can be opened only there.
        let is_elsewhere = self.location().is_some_and(|before| before != location);
        if is_elsewhere || key.is_some() && location == Location::Host {
            return Err(self.out_of_turn(asked, &clocked.line));
        }
        if let Some(held) = &mut self.held {
            held.location = Some(location);
            let stays = location == Location::Gpu && key.is_none() && !call.operands.is_empty();
            held.on_the_way = stays.then_some(call.set);
        }
        Ok(())
    }

    pub(crate) fn location(&self) -> Option<Location> {
        self.held.as_ref().and_then(|held| held.location)
    }

    /// Stops the worker at once after a drawn call: whatever it has not finished must not be finished now.
    fn stop_if_drawn(&mut self, call: &Call<'_>) {
        if let Some(held) = self.held.as_mut().filter(|_| call.is_drawn) {
            held.stop();
        }
    }

    /// Sends the line that the worker waits for, lets it go on, and waits for its next line.
    fn next_line(&mut self, asked: &Asked, sent: &[u8]) -> Result<Line, WorkerError> {
        // A line that is already here would stop the clock as soon as it starts.
        self.expect_silence(asked.call)?;
        let since = Instant::now();
        self.go_on(asked, sent)?;
        let text = self.await_line(asked, &[])?;
        Ok(Line::answering(since, text))
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

    /// Reads a line as the worker's turn. Any other line must be a reply with an error.
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
        let reason = "the worker sent this line out of order";
        self.garbage(asked.call, reason.to_owned(), line)
    }

    /// The time and the outputs that a call's last turn names.
    fn last_turn(
        &mut self,
        asked: &Asked,
        last: Turn,
        line: &str,
    ) -> Result<(Sample, Vec<Place>), WorkerError> {
        let Turn::Done { call, outputs } = last else {
            return Err(self.out_of_turn(asked, line));
        };
        let sample = Sample {
            call,
            kernel: None,
            clock: None,
            phases: Default::default(),
        };
        if !sample.is_possible() {
            let reason = "the reported time is not possible: zero, negative or no number".to_owned();
            return Err(self.garbage(asked.call, reason, line));
        }
        Ok((sample, outputs))
    }

    /// Stops the worker and writes the operands of a call into its memory, sealed if there is a key. Does nothing, and does not
    /// stop the worker, if the call has none to write or they still lie there.
    fn hand_over(
        &mut self,
        asked: &Asked,
        call: &Call<'_>,
        key: Option<u64>,
        inputs: &BTreeMap<String, Place>,
    ) -> Result<(), WorkerError> {
        let on_the_way = self.held.as_mut().and_then(|held| held.on_the_way.take());
        if call.operands.is_empty() || key.is_none() && on_the_way == Some(call.set) {
            return Ok(());
        }
        // The same for every call: a worker sees how long it is stopped, and could tell from it which calls are drawn.
        let before = self.seconds_when_stopped()?;
        let row_major = self.held.as_ref().is_some_and(|held| held.row_major);
        for operand in call.operands {
            let name = &operand.tensor.spec.name;
            let Some(place) = inputs.get(name) else {
                let why = format!("it does not say where it keeps its input `{name}`");
                return Err(self.cannot_hold(FailureKind::BadRequest, &why));
            };
            let what = format!("its input `{name}` cannot be written");
            self.in_memory(asked, &what, |process| {
                let pieces = operand.pieces(place, row_major)?;
                match key {
                    Some(key) => {
                        write_changed(process, &pieces, &operand.tensor.bytes, Operand::seal(key, place))
                    }
                    None => write(process, &pieces, &operand.tensor.bytes),
                }
            })?;
        }
        // Nothing that is stopped starts a process.
        if self.seconds_when_stopped()? == before {
            return Ok(());
        }
        let why = "it ran while it was stopped and its operands were written";
        Err(self.cannot_hold(FailureKind::BadRequest, why))
    }

    /// Stops the worker and reads the outputs of a call from its memory.
    fn read_outputs(
        &mut self,
        asked: &Asked,
        outputs: &[TensorSpec],
        places: &[Place],
    ) -> Result<Vec<Tensor>, WorkerError> {
        self.seconds_when_stopped()?;
        if places.len() != outputs.len() {
            let why = format!(
                "it names {} outputs, and the case has {}",
                places.len(),
                outputs.len()
            );
            return Err(self.cannot_hold(FailureKind::BadRequest, &why));
        }
        let read_one = |(spec, place): (&TensorSpec, &Place)| {
            let mut tensor = Tensor::filled(spec.clone(), 0);
            let what = format!("its output `{}` cannot be read", spec.name);
            self.in_memory(asked, &what, |process| {
                read(process, &Pieces::of(place, spec)?, &mut tensor.bytes)
            })?;
            Ok(tensor)
        };
        outputs.iter().zip(places).map(read_one).collect()
    }

    /// Does `work` in the memory of the held process; `what` says what has failed if it does.
    fn in_memory<T>(
        &mut self,
        asked: &Asked,
        what: &str,
        work: impl FnOnce(Pid) -> io::Result<T>,
    ) -> Result<T, WorkerError> {
        let Some(process) = self.held.as_ref().map(Held::process) else {
            return Err(self.cannot_hold(FailureKind::BadRequest, "it does not offer its memory"));
        };
        work(process).map_err(|error| {
            // The memory of a process is gone with it.
            if self.has_ended() {
                self.died(asked.call)
            } else {
                self.cannot_hold(FailureKind::BadRequest, &format!("{what}: {error}"))
            }
        })
    }
}
