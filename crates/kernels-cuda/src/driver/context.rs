//! A device's context.

use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUcontext, CUmemPool_attribute};

use super::device::Device;
use super::error::{DriverError, call};

/// The primary context of a device, which all users of the device in this process share. What is made in it keeps it.
///
/// A context is current for a thread, so neither it nor what is made in it leaves the thread.
#[derive(Debug, Clone)]
pub struct Context(Rc<Retained>);

#[derive(Debug)]
struct Retained {
    device: Device,
    handle: CUcontext,
    _stays_in_its_thread: PhantomData<*const ()>,
}

impl Context {
    /// Takes the device's context and makes it current.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn new(device: &Device) -> Result<Self, DriverError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the device is one that the driver named.
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

    /// Makes it the one that this thread's calls go to.
    pub(crate) fn make_current(&self) -> Result<(), DriverError> {
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

    /// Free and total bytes of the device's memory.
    ///
    /// # Errors
    /// If the driver does not tell.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current.
        unsafe { call!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok((free, total))
    }

    /// Memory freed in the order of a stream goes back to the pool and stays there: by default the pool gives it back to
    /// the system at every synchronisation, and the next call would wait for it.
    fn keep_freed_memory(&self) -> Result<(), DriverError> {
        let mut pool = ptr::null_mut();
        let mut most = u64::MAX;
        // SAFETY: the device is one that the driver named, and the attribute takes 64 bits.
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
        // SAFETY: retained once, released once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device.handle) };
    }
}
