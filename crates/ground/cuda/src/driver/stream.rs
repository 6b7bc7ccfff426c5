//! Streams, events and graphs.

use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use cudarc::driver::sys::{
    self, CUevent, CUevent_flags, CUgraph, CUgraphExec, CUstream, CUstream_flags, CUstreamCaptureMode,
};

use super::context::Context;
use super::error::{DriverError, call};

/// A queue of work.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    handle: CUstream,
    owned: bool,
}

impl Stream {
    /// Makes a stream that waits for no other stream.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut handle = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current.
        unsafe { call!(cuStreamCreate(&raw mut handle, flags)) }?;
        Ok(Self {
            context: context.clone(),
            handle,
            owned: true,
        })
    }

    /// Wraps the caller's stream, a `CUstream` or `cudaStream_t` of this context.
    ///
    /// # Safety
    /// `handle` must be a valid stream of this context and live as long as the returned value.
    pub unsafe fn borrowed(context: &Context, handle: *mut c_void) -> Self {
        Self {
            context: context.clone(),
            handle: handle.cast(),
            owned: false,
        }
    }

    /// Its context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits for all of its work.
    ///
    /// # Errors
    /// If any of it failed.
    pub fn synchronise(&self) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the stream lives.
        unsafe { call!(cuStreamSynchronize(self.handle)) }
    }

    /// Records the work that `enqueue` puts on the stream instead of running it.
    ///
    /// # Errors
    /// If a part of it cannot be recorded, or `enqueue` fails.
    pub fn capture<E: From<DriverError>>(&self, enqueue: impl FnOnce() -> Result<(), E>) -> Result<Graph, E> {
        self.context.make_current()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive; every path out of this function ends the capture.
        unsafe { call!(cuStreamBeginCapture_v2(self.handle, mode)) }?;
        let enqueued = enqueue();
        let mut graph = Template(ptr::null_mut());
        // SAFETY: the stream is being captured.
        let ended = unsafe { call!(cuStreamEndCapture(self.handle, &raw mut graph.0)) };
        enqueued?;
        ended?;
        let mut handle = ptr::null_mut();
        // SAFETY: the graph was just made.
        unsafe { call!(cuGraphInstantiateWithFlags(&raw mut handle, graph.0, 0)) }?;
        Ok(Graph {
            context: self.context.clone(),
            handle,
        })
    }

    /// The driver's handle, a `CUstream`, which is also a `cudaStream_t`.
    pub fn raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    pub(super) fn handle(&self) -> CUstream {
        self.handle
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned && self.context.make_current().is_ok() {
            // SAFETY: created once, destroyed once; the driver lets queued work finish.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}

/// A recorded graph that is not yet executable.
struct Template(CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// Recorded work that can run repeatedly. It refers to memory and kernels by address: the caller keeps them alive.
#[derive(Debug)]
pub struct Graph {
    context: Context,
    handle: CUgraphExec,
}

impl Graph {
    /// Runs the graph in stream order.
    ///
    /// # Errors
    /// If the driver reports an error.
    ///
    /// # Safety
    /// The memory and the kernels that were recorded must live until the work is done.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: graph and stream are alive; the caller promises the rest.
        unsafe { call!(cuGraphLaunch(self.handle, stream.handle)) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}

/// A timestamp at a point in a stream's work.
#[derive(Debug)]
pub struct Event {
    context: Context,
    handle: CUevent,
}

impl Event {
    /// Makes an event that is not yet recorded.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut handle = ptr::null_mut();
        // SAFETY: a context is current.
        unsafe {
            call!(cuEventCreate(
                &raw mut handle,
                CUevent_flags::CU_EVENT_DEFAULT as u32
            ))
        }?;
        Ok(Self {
            context: context.clone(),
            handle,
        })
    }

    /// Takes the time when the stream reaches this point.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: event and stream are alive.
        unsafe { call!(cuEventRecord(self.handle, stream.handle)) }
    }

    /// Waits until the stream reaches this point.
    ///
    /// # Errors
    /// If earlier work failed.
    pub fn synchronise(&self) -> Result<(), DriverError> {
        // SAFETY: the event lives.
        unsafe { call!(cuEventSynchronize(self.handle)) }
    }

    /// The time from another event to this one; the device's resolution is about half a microsecond.
    ///
    /// # Errors
    /// If either event was not reached, or earlier work failed.
    pub fn since(&self, earlier: &Self) -> Result<Duration, DriverError> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events live.
        unsafe {
            call!(cuEventElapsedTime_v2(
                &raw mut milliseconds,
                earlier.handle,
                self.handle
            ))
        }?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { sys::cuEventDestroy_v2(self.handle) };
        }
    }
}
