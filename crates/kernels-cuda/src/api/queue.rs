//! Where calls are put.

use std::cell::RefCell;
use std::ffi::c_void;

use super::layer::check_address;
use super::{CallPlan, Library, ServeError};
use crate::driver::{DeviceMemory, Stream};
use crate::plan::Addresses;

/// A stream with the scratch memory of its calls, which follow each other and so share it. For calls that run at the same
/// time, make several.
pub struct Queue {
    stream: Stream,
    scratch: RefCell<Scratch>,
}

/// Where the operands and the result of a call lie: device addresses, multiples of [`ALIGNMENT`](super::ALIGNMENT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Packed tokens of all products, `[m, k / 2]` each, k padded.
    pub tokens: u64,
    /// Their scales, `[m, k / 16]` each, k padded.
    pub token_scales: u64,
    /// The result, `[m, n]` each.
    pub output: u64,
}

struct Scratch {
    workspace: DeviceMemory,
    counters: DeviceMemory,
    /// Outgrown, but graphs may hold launches that use it.
    outgrown: Vec<DeviceMemory>,
}

impl Queue {
    /// A stream of its own.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn new(library: &Library) -> Result<Self, ServeError> {
        Self::with_stream(Stream::new(library.context())?)
    }

    /// A stream of somebody else's, a `CUstream` or `cudaStream_t`, of the device's primary context.
    ///
    /// # Errors
    /// If the driver refuses.
    ///
    /// # Safety
    /// The stream must be what is said, and live as long as the queue.
    pub unsafe fn on(library: &Library, stream: *mut c_void) -> Result<Self, ServeError> {
        // SAFETY: as promised.
        Self::with_stream(unsafe { Stream::borrowed(library.context(), stream) })
    }

    fn with_stream(stream: Stream) -> Result<Self, ServeError> {
        let none = || DeviceMemory::new(stream.context(), 0);
        let scratch = RefCell::new(Scratch {
            workspace: none()?,
            counters: none()?,
            outgrown: Vec::new(),
        });
        Ok(Self { stream, scratch })
    }

    /// The stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes sure that there is scratch memory for the plan's calls. Takes no time where there is; else it allocates, so
    /// call it before capturing.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reserve(&self, plan: &CallPlan) -> Result<(), ServeError> {
        let scratch = &mut *self.scratch.borrow_mut();
        if scratch.workspace.bytes() < plan.workspace_bytes() {
            let larger =
                DeviceMemory::new(self.stream.context(), plan.workspace_bytes().next_power_of_two())?;
            scratch
                .outgrown
                .push(std::mem::replace(&mut scratch.workspace, larger));
        }
        if scratch.counters.bytes() < plan.counter_bytes() {
            let larger = DeviceMemory::new(self.stream.context(), plan.counter_bytes().next_power_of_two())?;
            larger.fill(0, &self.stream)?;
            scratch
                .outgrown
                .push(std::mem::replace(&mut scratch.counters, larger));
        }
        Ok(())
    }

    /// Puts a call on the stream: its launches, one or two, and nothing else. May be captured.
    ///
    /// # Errors
    /// If an address is null or not aligned, the plan is of another GPU, no scratch memory was reserved for it, or the
    /// driver refuses.
    ///
    /// # Safety
    /// The buffers and the layer's weights must be device memory of the plan's sizes. They and the plan must live until
    /// the stream's work is done, and so must plan and queue as long as a graph holds the call. Weights are read before earlier launches
    /// have ended: no kernel may write them unless it is known to be complete, or a launch or copy that does not overlap lies
    /// between it and the calls.
    pub unsafe fn enqueue(&self, plan: &CallPlan, buffers: &Buffers) -> Result<(), ServeError> {
        self.check_device(plan)?;
        let scratch = self.scratch.borrow();
        let (needed, reserved) = (
            (plan.workspace_bytes(), plan.counter_bytes()),
            (scratch.workspace.bytes(), scratch.counters.bytes()),
        );
        if needed.0 > reserved.0 || needed.1 > reserved.1 {
            return Err(ServeError::NotReserved {
                needed: needed.0 + needed.1,
                reserved: reserved.0 + reserved.1,
            });
        }
        let launches = plan.launches(Addresses {
            operands: [buffers.tokens, 0, 0],
            scales: [buffers.token_scales, 0, 0],
            output: buffers.output,
            tables: 0,
            maps: 0,
            workspace: scratch.workspace.address(),
            counters: scratch.counters.address(),
        });
        // Without tokens there are neither launches nor buffers.
        if !launches.is_empty() {
            check_address(|| "tokens".to_owned(), buffers.tokens)?;
            check_address(|| "scales of tokens".to_owned(), buffers.token_scales)?;
            check_address(|| "output".to_owned(), buffers.output)?;
            self.stream.context().make_current()?;
        }
        for launch in launches {
            // SAFETY: the plan made the parameter for its own kernels; it points to the plan's tables and maps, to scratch
            // memory of the sizes that the plan asked for, and to what the caller promises.
            unsafe { plan.kernel(launch.pass).launch(&launch, &self.stream) }?;
        }
        Ok(())
    }

    fn check_device(&self, plan: &CallPlan) -> Result<(), ServeError> {
        let queue = self.stream.context().device().ordinal;
        if queue == plan.ordinal() {
            return Ok(());
        }
        Err(ServeError::OtherDevice {
            plan: plan.ordinal(),
            queue,
        })
    }
}

impl Drop for Queue {
    /// Scratch memory must not go while a kernel uses it.
    fn drop(&mut self) {
        let _ = self.stream.synchronise();
    }
}
