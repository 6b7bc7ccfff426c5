//! Calls on a GPU with the device's activity traced. That slows launches down, so nothing is clocked meanwhile.

use std::thread::sleep;
use std::time::Duration;

use gauntlet_calls::Tracer;
use gauntlet_calls::activity::MARK_BYTES;
use gauntlet_cuda::driver::{Context, DeviceMemory, Stream};
use gauntlet_tensors::TensorSpec;
use gauntlet_worker::protocol::{CallActivity, Failure};

use crate::cuda::{CudaPlace, driver_failure};
use crate::service::{Call, Planned, refused};

/// How long the device is watched before each call, while nothing is asked of the kernel. The loop of Python kernels does the
/// same (`crates/judge/hosts/python-loop/src/device/traced.rs`).
const QUIET: Duration = Duration::from_millis(1);

/// A trace in progress.
pub(crate) struct Tracing {
    tracer: Tracer,
    /// What is filled to mark the begin and the end of a call.
    mark: DeviceMemory,
    calls: Vec<CallActivity>,
}

impl Tracing {
    fn start(context: &Context) -> Result<Self, Failure> {
        Ok(Self {
            tracer: Tracer::start().map_err(refused)?,
            mark: DeviceMemory::new(context, MARK_BYTES).map_err(driver_failure)?,
            calls: Vec::new(),
        })
    }

    /// Begins a call on an idle device. `hold_back` holds the stream back.
    pub fn begin(
        &self,
        stream: &Stream,
        hold_back: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.tracer.clear();
        sleep(QUIET);
        hold_back()?;
        self.mark(stream)
    }

    /// Marks the begin or the end of the call on its stream.
    pub fn mark(&self, stream: &Stream) -> Result<(), Failure> {
        self.mark.fill(0, stream).map_err(driver_failure)
    }

    /// Takes down what the device did, after it has become idle.
    pub fn end(&mut self) -> Result<(), Failure> {
        self.calls.push(self.tracer.call().map_err(refused)?.into());
        Ok(())
    }
}

impl CudaPlace {
    /// Calls a kernel once for each planned copy, appends the outputs of each call to `results`, and says what the device did
    /// in each call.
    ///
    /// # Errors
    /// As for [`compute`](Self::compute), and if the device cannot be traced.
    pub fn trace(
        &mut self,
        planned: &Planned<'_>,
        outputs: &[TensorSpec],
        call: &mut dyn Call,
        results: &mut Vec<u8>,
    ) -> Result<Vec<CallActivity>, Failure> {
        self.tracing = Some(Tracing::start(self.context())?);
        let computed = self.compute(planned, outputs, call, results);
        let traced = self.tracing.take();
        computed?;
        Ok(traced.map_or_else(Vec::new, |tracing| tracing.calls))
    }
}
