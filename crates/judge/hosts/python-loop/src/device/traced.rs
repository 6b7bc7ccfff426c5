//! Calls between marks, so that a trace tells what of the device's activity lies in them.

use gauntlet_calls::activity::MARK_BYTES;

use super::Device;
use crate::driver::{Handle, checked};

impl Device {
    /// Makes a call on a stream between two marks, behind a hold, from an idle device to an idle device.
    pub fn marked<T, E: From<String>>(
        &self,
        stream: Handle,
        hold: u64,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.hold.begin(hold, stream)?;
        self.mark(stream)?;
        let result = call()?;
        self.mark(stream)?;
        self.synchronise()?;
        Ok(result)
    }

    fn mark(&self, stream: Handle) -> Result<(), String> {
        checked(
            // SAFETY: the memory that clears the second-level cache is longer than a mark, and nothing reads it; the stream is the
            // current one of torch.
            unsafe { (self.driver.fill_on)(self.flush.address, 0, MARK_BYTES, stream) },
            "a mark cannot be filled",
        )
    }
}
