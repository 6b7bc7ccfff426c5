//! Holds a stream back: work queued behind a hold starts without pauses when the host ends it.
//!
//! Without a hold, a kernel launched on an idle device starts only after the host has processed the launch, so the time
//! since the previous event measures the host rather than the device.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self, CUdeviceptr, CUstreamWaitValue_flags};

use super::context::Context;
use super::error::{DriverError, call};
use super::stream::Stream;

/// A word of the host's memory that streams wait on.
#[derive(Debug)]
pub struct Hold {
    context: Context,
    word: *mut u32,
    address: CUdeviceptr,
    /// Increases with each use, so that a stream that polls late still sees that its hold has ended.
    turn: Cell<u32>,
}

impl Hold {
    /// # Errors
    /// If the driver cannot allocate mapped host memory.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut word: *mut c_void = ptr::null_mut();
        // SAFETY: a context is current; the word is zeroed before anything reads it.
        unsafe {
            call!(cuMemHostAlloc(
                &raw mut word,
                size_of::<u32>(),
                sys::CU_MEMHOSTALLOC_DEVICEMAP
            ))?;
            word.cast::<u32>().write_volatile(0);
        }
        let mut hold = Self {
            context: context.clone(),
            word: word.cast(),
            address: 0,
            turn: Cell::new(0),
        };
        // SAFETY: the word was allocated as mapped memory.
        unsafe { call!(cuMemHostGetDevicePointer_v2(&raw mut hold.address, word, 0)) }?;
        Ok(hold)
    }

    /// Holds the stream back until the returned guard is dropped.
    ///
    /// # Errors
    /// If the driver reports an error: not every system lets streams wait on memory.
    pub fn begin(&self, stream: &Stream) -> Result<Holding<'_>, DriverError> {
        let turn = self.turn.get().wrapping_add(1);
        self.turn.set(turn);
        let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the stream and the word are alive.
        unsafe { call!(cuStreamWaitValue32_v2(stream.handle(), self.address, turn, flags)) }?;
        Ok(Holding { hold: self, turn })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: allocated once, freed once; the driver waits for streams that still poll the word.
            let _ = unsafe { sys::cuMemFreeHost(self.word.cast()) };
        }
    }
}

/// A hold that has begun; it ends when this is dropped.
#[derive(Debug)]
pub struct Holding<'a> {
    hold: &'a Hold,
    turn: u32,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        // SAFETY: the hold keeps the word alive.
        unsafe { self.hold.word.write_volatile(self.turn) };
    }
}
