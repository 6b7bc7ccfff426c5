//! A load of the device: calls that are queued in batches, so that it never waits for the host.

use crate::driver::{Handle, checked};

use super::Device;

/// Seconds that a batch of calls should take: batches grow until they do. Two batches are queued at a time, so the host has
/// this long to queue the next one, and a load ends up to twice this time late.
const BATCH: f64 = 2e-3;

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
        mut call: impl FnMut() -> Result<(), E>,
    ) -> Result<(usize, f64), E> {
        let fences = [self.start, self.end];
        let begun = clock();
        let (mut calls, mut batches, mut size) = (0, 0, 1);
        let mut ended_before = begun;
        while batches == 0 || clock() - begun < seconds {
            let fence = fences[batches % 2];
            if batches >= 2 {
                checked(
                    // SAFETY: the event was recorded two batches before.
                    unsafe { (self.driver.wait_for_event)(fence) },
                    "the kernel failed on the device",
                )?;
                let ended = clock();
                if ended - ended_before < BATCH {
                    size *= 2;
                }
                ended_before = ended;
            }
            for _ in 0..size {
                call()?;
            }
            checked(
                // SAFETY: the event is this device's, and the stream is the current one of torch.
                unsafe { (self.driver.record_event)(fence, stream) },
                "an event cannot be recorded",
            )?;
            calls += size;
            batches += 1;
        }
        self.synchronise()?;
        Ok((calls, clock() - begun))
    }
}
