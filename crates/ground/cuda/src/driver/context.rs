//! A device's context.

use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUcontext, CUmemPool_attribute};

use super::device::Device;
use super::error::{DriverError, call};

/// The primary context of a device, shared by all users of the device in this process. Objects made in it keep it
/// alive.
///
/// A context is current for a thread, so neither it nor objects made in it may leave the thread.
#[derive(Debug, Clone)]
pub struct Context(Rc<Retained>);

#[derive(Debug)]
struct Retained {
    device: Device,
    handle: CUcontext,
    _stays_in_its_thread: PhantomData<*const ()>,
}

impl Context {
    /// Retains the device's primary context and makes it current.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn new(device: &Device) -> Result<Self, DriverError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the driver returned this device handle.
        unsafe { call!(cuDevicePrimaryCtxRetain(&raw mut handle, device.handle)) }?;
        let context = Self(Rc::new(Retained {
            device: device.clone(),
            handle,
            _stays_in_its_thread: PhantomData,
        }));
        context.make_current()?;
        context.keep_freed_memory()?;
        Ok(context)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Makes this context the current one of this thread.
    pub fn make_current(&self) -> Result<(), DriverError> {
        // SAFETY: the context is retained.
        unsafe { call!(cuCtxSetCurrent(self.0.handle)) }
    }

    /// Waits for all work in the context.
    ///
    /// # Errors
    /// If any of it failed.
    pub fn synchronise(&self) -> Result<(), DriverError> {
        self.make_current()?;
        // SAFETY: a context is current.
        unsafe { call!(cuCtxSynchronize()) }
    }

    /// Makes lines of the level-2 cache that a kernel has set aside to persist ordinary ones (CUDA C++ Programming Guide, "L2
    /// set-aside"); devices before Ampere have none.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn reset_persisting_cache(&self) -> Result<(), DriverError> {
        if self.device().compute_capability < (8, 0) {
            return Ok(());
        }
        self.make_current()?;
        // SAFETY: a context is current.
        unsafe { call!(cuCtxResetPersistingL2Cache()) }
    }

    /// Free and total bytes of the device's memory.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current.
        unsafe { call!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok((free, total))
    }

    /// Memory freed in stream order returns to the pool and stays there. By default the pool releases it to the system
    /// at every synchronisation, and the next call would wait for a new allocation.
    fn keep_freed_memory(&self) -> Result<(), DriverError> {
        let mut pool = ptr::null_mut();
        let mut most = u64::MAX;
        // SAFETY: the driver returned this device handle, and the attribute is a 64-bit value.
        unsafe {
            call!(cuDeviceGetDefaultMemPool(&raw mut pool, self.0.device.handle))?;
            call!(cuMemPoolSetAttribute(
                pool,
                CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut most).cast()
            ))
        }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // SAFETY: the context was retained once and is released once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device.handle) };
    }
}
