//! Memory, clock and loop for kernels on a GPU.
//!
//! For each call, in this order: its inputs are brought to addresses of this call, its outputs are poisoned, the level-2
//! cache is evicted unless the calls are to be warm, and the device is synchronised. Then the call is launched between two
//! events behind a hold, and the whole device is synchronised before its output is read and the next call's inputs
//! exist. So nothing of one call can run in the time of another.
//!
//! Inputs come from the worker's own copies, or from a coordinator that holds the worker and writes them. Such a coordinator may
//! ask for a load right before a call (module `load`).

mod load;
mod places;

use std::collections::BTreeMap;
use std::time::Instant;

use gauntlet_cuda::driver::{Context, Device, DriverError, Event, Stream};
use gauntlet_cuda::nvml::Monitor;
use gauntlet_tensors::{Tensor, TensorSpec};
use gauntlet_worker::Turns;
use gauntlet_worker::protocol::{CaseRequest, Failure, HOST, Sample, Scope};

use crate::evict::Eviction;
use crate::hold::Hold;
use crate::service::{Call, Planned, broken, gone, ready};
use crate::staging::Staging;
use crate::tracing::Tracing;
use places::{Brought, Places};

/// The exit code when the device becomes unusable for this process: EX_SOFTWARE of sysexits.h.
const EXIT_CODE: i32 = 70;

/// Clock readings in a request: one reading may take longer than a small kernel.
const CLOCKS: usize = 8;

/// How often the time that an idle device needs to say so is taken when a worker starts. The longest counts.
const IDLE_TRIALS: usize = 32;

/// A GPU as a place for calls.
pub struct CudaPlace {
    /// The memory of the last case.
    places: Places,
    /// The operands of the last load on the GPU, for kernels that are trusted.
    brought: Brought,
    eviction: Eviction,
    events: [Event; 2],
    hold: Hold,
    /// Seconds that waiting for an idle device takes.
    idle: f64,
    /// The way of tensors from and to a coordinator that holds the worker, and the number of the load that it belongs to.
    staging: Option<(usize, Staging)>,
    monitor: Option<Monitor>,
    /// Present while calls are traced.
    pub(crate) tracing: Option<Tracing>,
    stream: Stream,
    context: Context,
    calls: usize,
    /// The load whose inputs were looked at after a call, and whether the kernel had written to them.
    written: Option<(usize, bool)>,
}

impl CudaPlace {
    /// The GPU with this number.
    ///
    /// # Errors
    /// If there is no such GPU, or no driver.
    pub fn new(ordinal: usize) -> Result<Self, DriverError> {
        let device = Device::new(ordinal)?;
        let context = Context::new(&device)?;
        let stream = Stream::new(&context)?;
        let mut place = Self {
            places: Places::default(),
            brought: Brought::default(),
            eviction: Eviction::new(&context, &stream)?,
            events: [Event::new(&context)?, Event::new(&context)?],
            hold: Hold::new(&context)?,
            idle: 0.0,
            staging: None,
            monitor: Monitor::new(&device).ok(),
            tracing: None,
            stream,
            context,
            calls: 0,
            written: None,
        };
        for _ in 0..IDLE_TRIALS {
            let begun = Instant::now();
            place.context.synchronise()?;
            place.idle = place.idle.max(begun.elapsed().as_secs_f64());
        }
        Ok(place)
    }

    /// Its context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The stream that calls use.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Calls a kernel once for each planned copy, and appends the outputs of the calls that are wanted to `results`. If these are
    /// not all, the kernel is trusted: operands come from the GPU's own memory, and if calls are to be warm, they stay in place from
    /// call to call unless the kernel writes to them.
    ///
    /// # Errors
    /// If the device has too little memory, or a call fails. An error that leaves the device unusable ends the process.
    pub fn compute(
        &mut self,
        planned: &Planned<'_>,
        outputs: &[TensorSpec],
        call: &mut dyn Call,
        results: &mut Vec<u8>,
    ) -> Result<Vec<Sample>, Failure> {
        self.allocate(planned.operands.copy(0), outputs)
            .map_err(driver_failure)?;
        let cold = self.is_cold(planned);
        let mut samples = Vec::with_capacity(planned.copies.len());
        let between = planned.copies.len().div_ceil(CLOCKS).max(1);
        let mut clock = None;
        let mut there: Option<&[Tensor]> = None;
        for (index, copy) in planned.copies.iter().enumerate() {
            let inputs = planned.operands.copy(*copy);
            let is_trusted = !planned.keeps_all();
            // A request of one call comes first, so that it is known before any call counts.
            let may_stay = is_trusted && !cold && self.written == Some((planned.load, false));
            let stays = may_stay && there.is_some_and(|there| std::ptr::eq(there, inputs));
            let placed = match stays {
                true if !planned.keeps(index) => Ok(()),
                true => self
                    .places
                    .fill(self.calls, inputs.len(), planned.poison, &self.stream),
                false => self
                    .spoil(self.calls, planned.poison)
                    .and_then(|()| match is_trusted {
                        true => self.bring(planned, *copy),
                        false => self.place(inputs.iter().enumerate()),
                    }),
            };
            let addresses = placed
                .and_then(|()| self.settle(cold))
                .map(|()| self.places.addresses(self.calls, inputs.len()))
                .map_err(driver_failure)?;
            there = Some(inputs);
            call.prepare(&addresses)?;
            let (mut sample, host) = self.timed(call, planned)?;
            if planned.scope == Scope::Device {
                sample.phases.insert(HOST.to_owned(), host);
            }
            if index % between == 0 {
                clock = self.monitor.as_ref().and_then(Monitor::clock);
            }
            sample.clock = clock;
            if planned.keeps(index) {
                self.take(inputs.len(), outputs, results)
                    .map_err(driver_failure)?;
            }
            if is_trusted && !cold && self.written.is_none_or(|(load, _)| load != planned.load) {
                let written = !self.holds(inputs).map_err(driver_failure)?;
                self.written = Some((planned.load, written));
            }
            if !may_stay {
                // The next call has other memory.
                (self.calls, there) = (self.calls + 1, None);
            }
            samples.push(sample);
        }
        // Warm calls stay in one place within a request, and the next one has another.
        self.calls += usize::from(there.is_some());
        Ok(samples)
    }

    /// Calls a kernel once for each planned copy, and takes turns with the coordinator, which writes the inputs that differ
    /// between calls and reads the outputs.
    ///
    /// # Errors
    /// If the device has too little memory, a call fails, or the coordinator is gone. An error that leaves the device unusable
    /// ends the process.
    pub fn step(
        &mut self,
        planned: &Planned<'_>,
        case: &CaseRequest,
        call: &mut dyn Call,
        turns: &mut Turns,
    ) -> Result<(), Failure> {
        self.allocate(planned.operands.copy(0), &case.outputs)
            .map_err(driver_failure)?;
        let cold = self.is_cold(planned);
        let mut staging = self.staging(planned, case).map_err(driver_failure)?;
        let known = match planned.heat {
            [] => None,
            _ => Some(
                staging
                    .known(&self.context, planned.operands.copy(0))
                    .map_err(driver_failure)?,
            ),
        };
        let ready = ready(case, staging.addresses(), known.is_some())?;
        for (number, copy) in planned.copies.iter().enumerate() {
            let inputs = planned.operands.copy(*copy);
            let load = known.as_deref().zip(planned.heat.get(number));
            match load {
                Some((known, _)) => self.prepare_load(known, planned.poison, call)?,
                None => {
                    let stay = inputs.iter().enumerate();
                    let stay = stay.filter(|(input, _)| staging.stays(*input));
                    self.spoil(self.calls, planned.poison)
                        .and_then(|()| self.place(stay))
                        .map_err(driver_failure)?;
                    call.prepare(&self.places.addresses(self.calls, inputs.len()))?;
                }
            }
            turns.ready(&ready).map_err(gone)?;
            let mut revealed = Instant::now();
            staging.send().map_err(driver_failure)?;
            if let Some((known, seconds)) = load {
                self.load(*seconds, call, turns)?;
                let key = turns.key().map_err(gone)?;
                revealed = Instant::now();
                self.prepare_after_load(known, &staging, planned.poison, key)
                    .map_err(driver_failure)?;
                call.prepare(&self.places.addresses(self.calls, inputs.len()))?;
            }
            staging
                .reveal(self.places.of(self.calls, 0..inputs.len()), &self.stream)
                .and_then(|()| self.settle(cold))
                .map_err(driver_failure)?;
            turns.placed(revealed.elapsed().as_secs_f64()).map_err(gone)?;
            let (sample, host) = self.timed(call, planned)?;
            let seconds = sample.call;
            turns.over(seconds, host).map_err(gone)?;
            let places = staging
                .bring_down(
                    self.places.of(self.calls, inputs.len()..self.places.tensors()),
                    &self.stream,
                )
                .map_err(driver_failure)?;
            turns.done(seconds, &places).map_err(gone)?;
            self.calls += 1;
        }
        self.staging = Some((planned.load, staging));
        Ok(())
    }

    /// The way of the tensors. It stays the same from one load to the next, since the coordinator does not write again what
    /// lies there already.
    fn staging(&mut self, planned: &Planned<'_>, case: &CaseRequest) -> Result<Staging, DriverError> {
        if let Some((_, staging)) = self.staging.take_if(|(load, _)| *load == planned.load) {
            return Ok(staging);
        }
        // Its memory is freed first, as that of the tensors is.
        self.staging = None;
        Staging::new(&self.context, case, planned.operands.copy(0))
    }

    /// Whether calls find nothing in the cache.
    fn is_cold(&self, planned: &Planned<'_>) -> bool {
        planned.operands.copies() > 1 || planned.operands.bytes() >= self.context.device().l2_bytes
    }

    /// Times a call from an idle device to an idle device. On the device alone it is launched behind a hold, and if the device
    /// is still at work after everything on the stream has ended, the rest was on another stream, and counts too. A
    /// whole call has no hold, and its time is the host's. Also returns the seconds that the host took before it waited.
    fn timed(&mut self, call: &mut dyn Call, planned: &Planned<'_>) -> Result<(Sample, f64), Failure> {
        let [begin, end] = &self.events;
        let scope = planned.scope;
        let hold_back = || {
            let begun = self.hold.begin(planned.hold, &self.stream);
            begun.map_err(driver_failure)
        };
        match &self.tracing {
            Some(tracing) => tracing.begin(&self.stream, hold_back)?,
            None if scope == Scope::Device => hold_back()?,
            None => {}
        }
        let start = Instant::now();
        begin.record(&self.stream).map_err(driver_failure)?;
        let called = call.call();
        if let Some(tracing) = &self.tracing {
            tracing.mark(&self.stream)?;
        }
        let recorded = end.record(&self.stream);
        let host = start.elapsed().as_secs_f64();
        let ended = recorded.and_then(|()| self.stream.synchronise());
        let on_stream = start.elapsed().as_secs_f64();
        let synchronised = self.context.synchronise();
        let whole = start.elapsed().as_secs_f64();
        called?;
        ended.and(synchronised).map_err(driver_failure)?;
        if let Some(tracing) = &mut self.tracing {
            tracing.end()?;
        }
        let kernel = end.since(begin).map_err(driver_failure)?.as_secs_f64();
        let rest = whole - on_stream - 2.0 * self.idle;
        let sample = Sample {
            call: match scope {
                Scope::Device => kernel + rest.max(0.0),
                Scope::Call => whole,
            },
            kernel: Some(kernel),
            clock: None,
            phases: BTreeMap::new(),
        };
        Ok((sample, host))
    }

    /// Allocates memory for the tensors of a case, unless that of the last case has the same sizes.
    fn allocate(&mut self, inputs: &[Tensor], outputs: &[TensorSpec]) -> Result<(), DriverError> {
        let inputs = inputs.iter().map(|tensor| tensor.bytes.len());
        let lengths = inputs.chain(outputs.iter().map(TensorSpec::bytes));
        let (context, staging) = (&self.context, &mut self.staging);
        self.places.allocate(context, lengths, || *staging = None)
    }

    /// Fills the memory of the call with this number with a byte, so that nothing stays of an earlier call.
    fn spoil(&self, number: usize, poison: u8) -> Result<(), DriverError> {
        self.places.fill(number, 0, poison, &self.stream)
    }

    /// Brings the inputs of a copy to the memory of the current call, from where they lie on the GPU if they do.
    fn bring(&mut self, planned: &Planned<'_>, copy: usize) -> Result<(), DriverError> {
        let (inputs, operands) = (planned.operands.copy(copy), (planned.operands, planned.load));
        let Some(brought) = self.brought.get(&self.context, operands, copy)? else {
            return self.place(inputs.iter().enumerate());
        };
        let places = self.places.of(self.calls, 0..inputs.len());
        for ((memory, begin), tensor) in places.zip(brought) {
            memory.receive(begin, tensor, tensor.bytes(), &self.stream)?;
        }
        Ok(())
    }

    /// Copies these inputs, each with its index, to the memory of the current call.
    fn place<'t>(&self, inputs: impl Iterator<Item = (usize, &'t Tensor)>) -> Result<(), DriverError> {
        for (index, tensor) in inputs {
            for (memory, begin) in self.places.of(self.calls, index..index + 1) {
                memory.overwrite(begin, &tensor.bytes)?;
            }
        }
        Ok(())
    }

    /// Whether the inputs of the current call are still these.
    fn holds(&self, inputs: &[Tensor]) -> Result<bool, DriverError> {
        let places = self.places.of(self.calls, 0..inputs.len());
        for (tensor, (memory, begin)) in inputs.iter().zip(places) {
            let mut there = vec![0; tensor.bytes.len()];
            memory.read_part(begin, &mut there, &self.stream)?;
            if there != *tensor.bytes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets the device finish everything before a call, with nothing in its cache if that is asked for.
    fn settle(&self, cold: bool) -> Result<(), DriverError> {
        if cold {
            // An eviction leaves lines that a kernel has set aside.
            self.context.reset_persisting_cache()?;
            self.eviction.queue(&self.stream)?;
        }
        self.context.synchronise()
    }

    /// Appends the outputs of the current call, which are the tensors from `first` on, to the results.
    fn take(&self, first: usize, outputs: &[TensorSpec], results: &mut Vec<u8>) -> Result<(), DriverError> {
        let places = self.places.of(self.calls, first..self.places.tensors());
        for (spec, (memory, begin)) in outputs.iter().zip(places) {
            let earlier = results.len();
            results.resize(earlier + spec.bytes(), 0);
            memory.read_part(begin, &mut results[earlier..], &self.stream)?;
        }
        Ok(())
    }
}

/// The failure that an error of the driver is. An illegal address, a failed launch and similar errors leave the process
/// without a usable device: the process then ends, since only a new one can go on, and the coordinator finds the
/// message at the end of its standard error.
pub fn driver_failure(error: DriverError) -> Failure {
    if error.is_sticky() {
        eprintln!("the GPU can compute nothing more for this process: {error}");
        std::process::exit(EXIT_CODE)
    }
    broken(error.to_string())
}
