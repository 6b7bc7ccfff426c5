//! The load before a call, which the coordinator asks for: the kernel is called back to back on other operands.

use std::time::Instant;

use gauntlet_calls::{Queue, Turns, in_batches};
use gauntlet_cuda::driver::{Context, DriverError, Event, Stream};
use gauntlet_worker::protocol::Failure;

use super::places::SHIFTS;
use super::{CudaPlace, driver_failure};
use crate::service::{Call, gone};
use crate::staging::{Known, Staging};

/// From a call to where the load before it has its tensors: as many calls later. It is odd, so their memory is not that of
/// the call, and their offsets are as far as possible from those of the next calls, so no kernel finds its next operands where
/// those of a load were.
const AWAY: usize = SHIFTS / 2 + 1;

/// The stream of the calls, in which two events are the marks.
struct Marked<'p> {
    events: &'p [Event; 2],
    stream: &'p Stream,
    context: &'p Context,
}

impl Queue for Marked<'_> {
    type Error = Failure;

    fn mark(&self, mark: usize) -> Result<(), Failure> {
        self.events[mark].record(self.stream).map_err(driver_failure)
    }

    fn reach(&self, mark: usize) -> Result<(), Failure> {
        self.events[mark].synchronise().map_err(driver_failure)
    }

    fn finish(&self) -> Result<(), Failure> {
        self.context.synchronise().map_err(driver_failure)
    }
}

impl CudaPlace {
    /// Gets the tensors of a load ready, and the kernel to be called on them.
    pub(super) fn prepare_load(&self, known: &Known, poison: u8, call: &mut dyn Call) -> Result<(), Failure> {
        let (number, inputs) = (self.calls + AWAY, known.tensors.len());
        self.spoil(number, poison)
            .and_then(|()| known.copy(self.places.of(number, 0..inputs), |_| true, &self.stream))
            .map_err(driver_failure)?;
        call.prepare(&self.places.addresses(number, inputs))
    }

    /// Loads the device with the kernel, and tells the coordinator when that begins and ends. Nothing of it is kept.
    pub(super) fn load(&self, seconds: f64, call: &mut dyn Call, turns: &mut Turns) -> Result<(), Failure> {
        let queue = Marked {
            events: &self.events,
            stream: &self.stream,
            context: &self.context,
        };
        queue.finish()?;
        let begun = Instant::now();
        let clock = || begun.elapsed().as_secs_f64();
        turns.heating(seconds).map_err(gone)?;
        let (calls, busy) = in_batches(&queue, seconds, clock, || call.call())?;
        turns.heated(calls, busy).map_err(gone)
    }

    /// Gets the tensors of the current call ready after the load before it, whose kernel may have written to them: fills all of
    /// them, places the inputs that stay the same in every call, and opens the others where they are hidden.
    pub(super) fn prepare_after_load(
        &self,
        known: &Known,
        staging: &Staging,
        poison: u8,
        key: u64,
    ) -> Result<(), DriverError> {
        self.spoil(self.calls, poison)?;
        let places = self.places.of(self.calls, 0..known.tensors.len());
        known.copy(places, |input| staging.stays(input), &self.stream)?;
        staging.open(&known.opener, key, &self.stream)
    }
}
