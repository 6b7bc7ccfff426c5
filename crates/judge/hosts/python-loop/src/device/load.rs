//! A load of the device: calls that are queued in batches, so that it never waits for the host.

use gauntlet_calls::{Queue, in_batches};

use crate::driver::{Handle, checked};

use super::Device;

/// A stream of the device, in which its two events are the marks.
struct Marked<'d> {
    device: &'d Device,
    stream: Handle,
}

impl Marked<'_> {
    fn event(&self, mark: usize) -> Handle {
        [self.device.start, self.device.end][mark]
    }
}

impl Queue for Marked<'_> {
    type Error = String;

    fn mark(&self, mark: usize) -> Result<(), String> {
        checked(
            // SAFETY: the event is this device's, and the stream is the current one of torch.
            unsafe { (self.device.driver.record_event)(self.event(mark), self.stream) },
            "an event cannot be recorded",
        )
    }

    fn reach(&self, mark: usize) -> Result<(), String> {
        checked(
            // SAFETY: the event is this device's.
            unsafe { (self.device.driver.wait_for_event)(self.event(mark)) },
            "the kernel failed on the device",
        )
    }

    fn finish(&self) -> Result<(), String> {
        self.device.synchronise()
    }
}

impl Device {
    /// Queues calls on a stream until `seconds` have passed by the clock, and waits until the whole device has
    /// finished. Returns the number of calls and the seconds until then.
    ///
    /// # Errors
    /// The first error of a call, or of the device.
    pub fn load<E: From<String>>(
        &self,
        stream: Handle,
        seconds: f64,
        clock: impl Fn() -> f64,
        call: impl FnMut() -> Result<(), E>,
    ) -> Result<(usize, f64), E> {
        let queue = Marked { device: self, stream };
        in_batches(&queue, seconds, clock, call)
    }
}
