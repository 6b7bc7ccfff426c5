//! Clocking a call.

use std::time::Instant;

use super::{Call, Host};
use crate::driver::Handle;
use crate::python::{Failed, Object};

/// How calls are clocked.
pub(super) struct Clocking {
    /// The stream of the calls on a GPU.
    pub stream: Handle,
    /// Whether calls on a GPU are clocked as a whole.
    pub whole: bool,
    /// Nanoseconds for which a GPU is held back before a call, unless it is clocked as a whole.
    pub hold: u64,
}

impl Host {
    /// Calls the kernel; returns its result, the seconds of the call, on a GPU those of the device unless whole calls are clocked,
    /// and the seconds that the host took before it waited for the device, or 0 if it was not waited for.
    pub(super) fn timed(
        &self,
        kernel: &Object,
        call: &Call,
        clocking: &Clocking,
    ) -> Result<(Object, f64, f64), Failed> {
        let apply = || kernel.apply(&call.arguments, call.keywords.as_ref());
        match &self.device {
            Some(device) if clocking.whole => {
                let (result, seconds) = device.time_whole(apply)?;
                Ok((result, seconds, 0.0))
            }
            Some(device) => device.time(clocking.stream, clocking.hold, apply),
            None => {
                let begun = Instant::now();
                let result = apply()?;
                Ok((result, begun.elapsed().as_secs_f64(), 0.0))
            }
        }
    }
}
