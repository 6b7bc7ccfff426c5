//! Work of the host while a stream is being captured.

use std::marker::PhantomData;

use cudarc::driver::sys::CUstreamCaptureMode;

use super::context::Context;
use super::error::{DriverError, call};

/// While it lives, this thread may allocate memory, copy and load kernels although a stream is being captured. Otherwise the
/// driver refuses these calls and ends the capture, because they could wait for work that is only being recorded (CUDA driver
/// API, `cuThreadExchangeStreamCaptureMode`). What this thread does meanwhile may wait for no stream that is captured.
pub struct RelaxedCapture {
    before: CUstreamCaptureMode,
    /// The mode belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl RelaxedCapture {
    /// Relaxes the mode of this thread.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver writes the thread's mode so far to the place that it read the new one from.
        unsafe { call!(cuThreadExchangeStreamCaptureMode(&raw mut mode)) }?;
        Ok(Self {
            before: mode,
            _thread: PhantomData,
        })
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        let mut mode = self.before;
        // SAFETY: as in `new`. The call can only fail for a mode that does not exist.
        let _ = unsafe { call!(cuThreadExchangeStreamCaptureMode(&raw mut mode)) };
    }
}
