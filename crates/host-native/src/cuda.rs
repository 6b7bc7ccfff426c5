//! Memory, clock and loop for kernels on a GPU.
//!
//! For each call, in this order: its inputs are copied from the host to addresses of this call, its outputs are
//! poisoned, the level-2 cache is evicted unless the calls are to be warm, and the device is synchronised. Then the
//! call is queued between two events behind a closed gate, the gate is opened, and the whole device is synchronised
//! before its output is read and the next call's inputs exist. So nothing of one call can run in the time of another.

use std::collections::BTreeMap;
use std::time::Instant;

use gauntlet_formats::{Tensor, TensorSpec};
use gauntlet_kernels_cuda::driver::{Context, Device, DeviceMemory, DriverError, Event, Gate, Stream};
use gauntlet_kernels_cuda::nvml::Monitor;
use gauntlet_worker::protocol::{Failure, Sample};

use crate::evict::Eviction;
use crate::service::{Addresses, Call, Planned, broken};

/// The exit code when the device becomes unusable for this process: EX_SOFTWARE of sysexits.h.
const EXIT_CODE: i32 = 70;

/// Alignment of tensors, that of the driver's allocations.
const ALIGNMENT: usize = 256;

/// A tensor begins in turn at each of this many places of its allocation.
const SHIFTS: usize = 64;

/// Clock readings in a request: one reading may take longer than a small kernel.
const CLOCKS: usize = 8;

/// A GPU as a place for calls.
pub struct CudaPlace {
    /// The memory of the last case, by tensor: inputs first. Two each, used in turn.
    slots: Vec<[DeviceMemory; 2]>,
    eviction: Eviction,
    events: [Event; 2],
    gate: Option<Gate>,
    monitor: Option<Monitor>,
    stream: Stream,
    context: Context,
    calls: usize,
}

impl CudaPlace {
    /// The GPU with this number. `gated` calls only queue work: behind a closed gate, a call that waits for its own work
    /// would wait forever.
    ///
    /// # Errors
    /// If there is no such GPU, or no driver.
    pub fn new(ordinal: usize, gated: bool) -> Result<Self, DriverError> {
        let device = Device::new(ordinal)?;
        let context = Context::new(&device)?;
        let stream = Stream::new(&context)?;
        Ok(Self {
            slots: Vec::new(),
            eviction: Eviction::new(&context, &stream)?,
            events: [Event::new(&context)?, Event::new(&context)?],
            gate: gated.then(|| Gate::new(&context).ok()).flatten(),
            monitor: Monitor::new(&device).ok(),
            stream,
            context,
            calls: 0,
        })
    }

    /// Its context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The stream that calls use.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Calls a kernel once for each planned copy, and appends the outputs of each call to `results`.
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
        let cold =
            planned.operands.copies() > 1 || planned.operands.bytes() >= self.context.device().l2_bytes;
        let mut samples = Vec::with_capacity(planned.copies.len());
        let between = planned.copies.len().div_ceil(CLOCKS).max(1);
        let mut clock = None;
        for (index, copy) in planned.copies.iter().enumerate() {
            let inputs = planned.operands.copy(*copy);
            let addresses = self
                .place(inputs, outputs, planned.poison, cold)
                .map_err(driver_failure)?;
            call.prepare(&addresses)?;
            let mut sample = self.timed(call)?;
            if index % between == 0 {
                clock = self.monitor.as_ref().and_then(Monitor::clock);
            }
            sample.clock = clock;
            self.take(inputs.len(), outputs, results)
                .map_err(driver_failure)?;
            self.calls += 1;
            samples.push(sample);
        }
        Ok(samples)
    }

    fn timed(&self, call: &mut dyn Call) -> Result<Sample, Failure> {
        let [begin, end] = &self.events;
        let gate = self.gate.as_ref().map(|gate| gate.close(&self.stream));
        let closed = gate.transpose().map_err(driver_failure)?;
        let start = Instant::now();
        begin.record(&self.stream).map_err(driver_failure)?;
        let called = call.call();
        let recorded = end.record(&self.stream);
        drop(closed);
        let synchronised = self.context.synchronise();
        let seconds = start.elapsed().as_secs_f64();
        called?;
        recorded.and(synchronised).map_err(driver_failure)?;
        let kernel = end.since(begin).map_err(driver_failure)?;
        Ok(Sample {
            call: seconds,
            kernel: Some(kernel.as_secs_f64()),
            clock: None,
            phases: BTreeMap::new(),
        })
    }

    /// Allocates memory for the tensors of a case, unless that of the last case has the same sizes.
    fn allocate(&mut self, inputs: &[Tensor], outputs: &[TensorSpec]) -> Result<(), DriverError> {
        let inputs = inputs.iter().map(|tensor| tensor.bytes.len());
        let bytes: Vec<usize> = inputs
            .chain(outputs.iter().map(TensorSpec::bytes))
            .map(|bytes| bytes.max(1) + SHIFTS * ALIGNMENT)
            .collect();
        let has = |slot: &[DeviceMemory; 2], bytes: &usize| slot[0].bytes() == *bytes;
        if self.slots.len() == bytes.len()
            && self
                .slots
                .iter()
                .zip(&bytes)
                .all(|(slot, bytes)| has(slot, bytes))
        {
            return Ok(());
        }
        // The old memory is freed first: old and new together might not fit.
        self.slots.clear();
        for bytes in bytes {
            let slot = [
                DeviceMemory::new(&self.context, bytes)?,
                DeviceMemory::new(&self.context, bytes)?,
            ];
            self.slots.push(slot);
        }
        Ok(())
    }

    /// Where the tensors of the current call begin in their allocations. The step is odd, so every place is used.
    fn shift(&self, tensor: usize) -> usize {
        (self.calls * 37 + tensor * 11) % SHIFTS * ALIGNMENT
    }

    fn slot(&self, tensor: usize) -> &DeviceMemory {
        &self.slots[tensor][self.calls % 2]
    }

    /// Fills the memory of the current call and waits until it is filled.
    fn place(
        &self,
        inputs: &[Tensor],
        outputs: &[TensorSpec],
        poison: u8,
        cold: bool,
    ) -> Result<Addresses, DriverError> {
        let address = |tensor: usize| self.slot(tensor).address() + self.shift(tensor) as u64;
        for (index, tensor) in inputs.iter().enumerate() {
            // Of the last call but one, nothing stays.
            self.slot(index).fill(poison, &self.stream)?;
            self.stream.synchronise()?;
            self.slot(index).overwrite(self.shift(index), &tensor.bytes)?;
        }
        let all = inputs.len() + outputs.len();
        for index in inputs.len()..all {
            self.slot(index).fill(poison, &self.stream)?;
        }
        if cold {
            self.eviction.queue(&self.stream)?;
        }
        self.context.synchronise()?;
        Ok(Addresses {
            inputs: (0..inputs.len()).map(address).collect(),
            outputs: (inputs.len()..all).map(address).collect(),
        })
    }

    /// Appends the outputs of the current call, which are the tensors from `first` on, to the results.
    fn take(&self, first: usize, outputs: &[TensorSpec], results: &mut Vec<u8>) -> Result<(), DriverError> {
        for (tensor, spec) in (first..).zip(outputs) {
            let begin = results.len();
            results.resize(begin + spec.bytes(), 0);
            self.slot(tensor)
                .read_part(self.shift(tensor), &mut results[begin..], &self.stream)?;
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
