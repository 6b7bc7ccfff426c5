//! A GPU: the clock of its work, and its second-level cache.

mod load;
mod traced;

use std::ffi::c_int;
use std::rc::Rc;
use std::time::Instant;

use gauntlet_calls::activity::MARK_BYTES;

use crate::driver::{Driver, Handle, NOT_SUPPORTED, checked};
use crate::hold::Hold;
use crate::memory::DeviceBlock;

/// CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE.
const L2_CACHE_SIZE: c_int = 38;

/// How often to measure what a synchronisation of an idle device takes.
const IDLE_TRIALS: usize = 32;

/// The device of the current context.
pub struct Device {
    /// The driver.
    pub driver: Rc<Driver>,
    hold: Hold,
    start: Handle,
    end: Handle,
    /// Twice as long as the second-level cache: after it was filled, nothing else is in the cache. At least as long as a mark.
    flush: DeviceBlock,
    /// Seconds that a synchronisation of the idle device takes at most.
    idle: f64,
}

impl Device {
    /// The device of the calling thread's current context.
    pub fn new(driver: Driver) -> Result<Self, String> {
        let driver = Rc::new(driver);
        let (mut device, mut cache) = (0, 0);
        checked(
            // SAFETY: the driver fills both variables.
            unsafe { (driver.current_device)(&raw mut device) },
            "there is no current context",
        )?;
        // SAFETY: as above.
        let status = unsafe { (driver.attribute)(&raw mut cache, L2_CACHE_SIZE, device) };
        checked(status, "the size of the second-level cache cannot be read")?;
        let mut events = [std::ptr::null_mut(); 2];
        for event in &mut events {
            checked(
                // SAFETY: the driver fills the variable.
                unsafe { (driver.create_event)(event, 0) },
                "an event cannot be created",
            )?;
        }
        let cache = usize::try_from(cache).unwrap_or(0);
        let flush = DeviceBlock::new(&driver, (2 * cache).max(MARK_BYTES))?;
        let hold = Hold::new(&driver, device)?;
        let mut device = Self {
            driver,
            hold,
            start: events[0],
            end: events[1],
            flush,
            idle: 0.0,
        };
        for _ in 0..IDLE_TRIALS {
            let begun = Instant::now();
            device.synchronise()?;
            device.idle = device.idle.max(begun.elapsed().as_secs_f64());
        }
        Ok(device)
    }

    /// Waits until the whole device has finished, whatever the stream.
    pub fn synchronise(&self) -> Result<(), String> {
        checked(
            // SAFETY: the call has no arguments.
            unsafe { (self.driver.synchronize)() },
            "the kernel failed on the device",
        )
    }

    /// Fills the second-level cache with something else. Lines that a kernel has set aside to persist would survive that
    /// (CUDA C++ Programming Guide, "L2 set-aside"), so they become ordinary ones first; devices before Ampere have none.
    pub fn clear_cache(&self) -> Result<(), String> {
        // SAFETY: the call has no arguments.
        let status = unsafe { (self.driver.reset_persisting)() };
        if status != NOT_SUPPORTED {
            checked(status, "the cache cannot be reset")?;
        }
        self.fill(self.flush.address, 0, self.flush.bytes)
    }

    /// Fills memory with a byte.
    pub fn fill(&self, address: u64, byte: u8, bytes: usize) -> Result<(), String> {
        if bytes == 0 {
            return Ok(());
        }
        checked(
            // SAFETY: callers give addresses of blocks or of live tensors of that length.
            unsafe { (self.driver.fill)(address, byte, bytes) },
            "memory cannot be filled",
        )
    }

    /// Times a call on a stream, in seconds on the device: launched behind a hold, from an idle device to an idle device.
    /// If the device is still at work after everything on the stream has ended, the rest was on another stream, and counts
    /// too. Also returns the seconds that the host took before it waited for the device. The hold lasts `hold` nanoseconds.
    pub fn time<T, E: From<String>>(
        &self,
        stream: Handle,
        hold: u64,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, f64, f64), E> {
        self.hold.begin(hold, stream)?;
        let begun = Instant::now();
        checked(
            // SAFETY: the event is this device's, and the stream is the current one of torch.
            unsafe { (self.driver.record_event)(self.start, stream) },
            "an event cannot be recorded",
        )?;
        let result = call()?;
        checked(
            // SAFETY: as above.
            unsafe { (self.driver.record_event)(self.end, stream) },
            "an event cannot be recorded",
        )?;
        let host = begun.elapsed().as_secs_f64();
        checked(
            // SAFETY: the event was recorded.
            unsafe { (self.driver.wait_for_event)(self.end) },
            "the kernel failed on the device",
        )?;
        let on_stream = begun.elapsed().as_secs_f64();
        self.synchronise()?;
        let whole = begun.elapsed().as_secs_f64();
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events were recorded and have ended; the driver fills the variable.
        let status = unsafe { (self.driver.elapsed)(&raw mut milliseconds, self.start, self.end) };
        checked(status, "the time between two events cannot be read")?;
        let rest = whole - on_stream - 2.0 * self.idle;
        Ok((result, f64::from(milliseconds) / 1e3 + rest.max(0.0), host))
    }

    /// Times a whole call, in seconds of the host: from before an idle device is given the first launch until the device is
    /// idle again.
    pub fn time_whole<T, E: From<String>>(&self, call: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
        let begun = Instant::now();
        let result = call()?;
        self.synchronise()?;
        Ok((result, begun.elapsed().as_secs_f64()))
    }
}
