//! Queues that run calls.

use std::cell::RefCell;
use std::ffi::c_void;

use super::layer::check_address;
use super::ready::Ready;
use super::{CallPlan, Library, Routing, ServeError};
use crate::plan::{Addresses, OPERANDS, Plan};
use gauntlet_cuda::driver::{DeviceMemory, RelaxedCapture, Stream};

/// A stream with the scratch memory of its calls. Calls on one stream run one after another, so they share this memory.
/// For calls that run at the same time, make several queues.
pub struct Queue {
    stream: Stream,
    scratch: RefCell<Scratch>,
}

/// Addresses of the operands and the result of a call in device memory, multiples of [`ALIGNMENT`](super::ALIGNMENT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Tokens of all products: NVFP4 `[m, k / 2]` each, k padded; or 16-bit floats `[m, k]` each, not padded.
    pub tokens: u64,
    /// Their scales, `[m, k / 16]` each, k padded; 0 for 16-bit floats, which have none.
    pub token_scales: u64,
    /// The result, `[m, n]` each.
    pub output: u64,
}

/// Where the device reads the ends of each product's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The address of an `i32` for each product.
    pub address: u64,
    /// Rows of tokens of all products, at most those that the plan is for.
    pub rows: usize,
    /// Whether the last launch of the stream is that of a routed call or of [`Queue::arrange`], and the ends were written before it: then this
    /// call plans while that one still computes.
    pub are_ready: bool,
}

struct Scratch {
    workspace: DeviceMemory,
    counters: DeviceMemory,
    /// Scratch memory that became too small; kept because graphs may hold launches that use it.
    outgrown: Vec<DeviceMemory>,
}

impl Queue {
    /// Makes a queue with a new stream.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn new(library: &Library) -> Result<Self, ServeError> {
        Self::with_stream(Stream::new(library.context())?)
    }

    /// Makes a queue on the caller's stream, a `CUstream` or `cudaStream_t` of the device's primary context.
    ///
    /// # Errors
    /// If the driver reports an error.
    ///
    /// # Safety
    /// `stream` must be a valid stream of that context and live as long as the queue.
    pub unsafe fn on(library: &Library, stream: *mut c_void) -> Result<Self, ServeError> {
        // SAFETY: the caller promises a valid stream of this context that outlives the queue.
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

    /// Makes sure that there is scratch memory for the plan's calls. Returns immediately if there is enough; otherwise
    /// it allocates. The stream may be captured meanwhile, unless it waits for the default stream, in which memory is cleared.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reserve(&self, plan: &CallPlan) -> Result<(), ServeError> {
        self.reserve_for(plan.ready())
    }

    pub(super) fn reserve_for(&self, ready: &Ready) -> Result<(), ServeError> {
        let scratch = &mut *self.scratch.borrow_mut();
        let context = self.stream.context();
        if scratch.workspace.bytes() < ready.workspace_bytes {
            let _relaxed = RelaxedCapture::new(context)?;
            let larger = DeviceMemory::new(context, ready.workspace_bytes.next_power_of_two())?;
            scratch
                .outgrown
                .push(std::mem::replace(&mut scratch.workspace, larger));
        }
        if scratch.counters.bytes() < ready.counter_bytes {
            let _relaxed = RelaxedCapture::new(context)?;
            // Cleared now and not in the stream: a graph would clear them in each replay, and calls before the first replay
            // would find them as they were allocated.
            let larger =
                DeviceMemory::assembled::<&[u8]>(context, ready.counter_bytes.next_power_of_two(), &[])?;
            scratch
                .outgrown
                .push(std::mem::replace(&mut scratch.counters, larger));
        }
        Ok(())
    }

    /// Puts a call on the stream: one or two launches and nothing else. It may be captured.
    ///
    /// # Errors
    /// If an address is null or not aligned, the plan is for another GPU, no scratch memory was reserved for it, or the
    /// driver reports an error.
    ///
    /// # Safety
    /// The buffers and the layer's weights must be device memory of the plan's sizes. They and the plan must live until
    /// the stream's work is done; plan and queue must also live as long as a graph holds the call. The kernel reads
    /// weights before earlier launches have ended: a kernel that writes them must be known to be complete, or a launch
    /// or copy that does not overlap must lie between it and the calls.
    pub unsafe fn enqueue(&self, plan: &CallPlan, buffers: &Buffers) -> Result<(), ServeError> {
        if let Routing::Device { .. } = plan.shape().routing() {
            return Err(ServeError::Ends {
                plan: "reads on the device where each product's tokens end",
                call: "enqueue_routed",
            });
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch(plan, buffers, None) }
    }

    /// Puts a call of a [routed plan](super::Layer::plan_routed) on the stream: one launch or two and nothing else, the same for
    /// every routing. It may be captured; each replay reads `ends` again.
    ///
    /// `ends` has the address of an `i32` for each product in device memory: the row at which its tokens end, counted over all
    /// products, so that the first product's begin at row 0 and each later one's where those before it end. These are the
    /// offsets of PyTorch's `_grouped_mm`; of offsets that begin with a 0, give the address of the second. Rows beyond the last end are
    /// neither read nor written. Ends that decrease count as those before them, those beyond the rows as their number.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    ///
    /// # Safety
    /// As [`enqueue`](Self::enqueue), with buffers for the rows of the call; `ends` is device memory that is written by earlier
    /// work on the stream.
    pub unsafe fn enqueue_routed(
        &self,
        plan: &CallPlan,
        buffers: &Buffers,
        ends: Ends,
    ) -> Result<(), ServeError> {
        let Routing::Device { rows: most, .. } = *plan.shape().routing() else {
            return Err(ServeError::Ends {
                plan: "was made for the token counts of each product",
                call: "enqueue",
            });
        };
        let Ends { address, rows, .. } = ends;
        if rows > most {
            return Err(ServeError::EndsRows { rows, most });
        }
        if address == 0 || !address.is_multiple_of(size_of::<i32>() as u64) {
            return Err(ServeError::EndsAddress { address });
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch(plan, buffers, Some(ends)) }
    }

    /// # Safety
    /// As [`enqueue`](Self::enqueue), and [`enqueue_routed`](Self::enqueue_routed) if the plan is routed.
    unsafe fn launch(
        &self,
        plan: &CallPlan,
        buffers: &Buffers,
        ends: Option<Ends>,
    ) -> Result<(), ServeError> {
        let addresses = Addresses {
            operands: [
                buffers.tokens,
                ends.map_or(0, |ends| ends.address),
                ends.map_or(0, |ends| u64::from(ends.are_ready)),
            ],
            scales: [buffers.token_scales, 0, 0],
            factors: [1.0; OPERANDS],
            output: buffers.output,
            tables: 0,
            maps: plan.maps(),
            workspace: 0,
            counters: 0,
            rows: ends.map_or(0, |ends| ends.rows),
        };
        let check = || {
            check_address(|| "tokens".to_owned(), buffers.tokens)?;
            if !plan.shape().layer().tokens.is_half() {
                check_address(|| "scales of tokens".to_owned(), buffers.token_scales)?;
            }
            check_address(|| "output".to_owned(), buffers.output)
        };
        // SAFETY: the caller promises size and lifetime of the buffers; the layer made the maps for this plan.
        unsafe { self.launch_all(plan.ready(), plan.shape().plan(), addresses, check) }
    }

    /// Puts the launches of a plan on the stream, with its tables and this queue's scratch memory. Where there are any, `check`
    /// comes first: without work there are no launches, and buffers need not exist.
    ///
    /// # Safety
    /// The operands, their scales, the output and the maps are device memory as the plan needs it, which lives until the stream's
    /// work is done; `ready` was made of `plan`.
    pub(super) unsafe fn launch_all(
        &self,
        ready: &Ready,
        plan: &dyn Plan,
        addresses: Addresses,
        check: impl FnOnce() -> Result<(), ServeError>,
    ) -> Result<(), ServeError> {
        self.check_device(ready.ordinal)?;
        let scratch = self.scratch.borrow();
        let (needed, reserved) = (
            (ready.workspace_bytes, ready.counter_bytes),
            (scratch.workspace.bytes(), scratch.counters.bytes()),
        );
        if needed.0 > reserved.0 || needed.1 > reserved.1 {
            return Err(ServeError::NotReserved {
                needed: needed.0 + needed.1,
                reserved: reserved.0 + reserved.1,
            });
        }
        let launches = plan.launches(&Addresses {
            tables: ready.tables.address(),
            workspace: scratch.workspace.address(),
            counters: scratch.counters.address(),
            ..addresses
        });
        if !launches.is_empty() {
            check()?;
            self.stream.context().make_current()?;
        }
        for launch in launches {
            // SAFETY: the plan made the parameter for its own kernels. It points to the plan's tables, to scratch memory
            // of the sizes that the plan asked for, and to memory for which the caller promises size and lifetime.
            unsafe { ready.kernels[plan.place(launch.pass)].launch(&launch, &self.stream) }?;
        }
        Ok(())
    }

    pub(super) fn check_device(&self, plan: usize) -> Result<(), ServeError> {
        let queue = self.stream.context().device().ordinal;
        if queue == plan {
            return Ok(());
        }
        Err(ServeError::OtherDevice { plan, queue })
    }
}

impl Drop for Queue {
    /// Scratch memory must outlive all kernels that use it.
    fn drop(&mut self) {
        let _ = self.stream.synchronise();
    }
}
