//! Memory of the host from which copies to a GPU are fast.

use cudarc::driver::sys;

use super::context::Context;
use super::error::{DriverError, call};

/// Bytes on the host. Their pages are locked where the driver allows it, which only makes copies faster.
#[derive(Debug)]
pub struct HostMemory {
    context: Context,
    bytes: Vec<u8>,
    is_locked: bool,
}

impl HostMemory {
    /// A block that holds zeros.
    ///
    /// # Errors
    /// If the context cannot be used.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut bytes = vec![0_u8; bytes];
        // SAFETY: the memory belongs to this block, which unlocks its pages before it is freed. It is never resized.
        let locked = unsafe { call!(cuMemHostRegister_v2(bytes.as_mut_ptr().cast(), bytes.len(), 0)) };
        Ok(Self {
            context: context.clone(),
            bytes,
            is_locked: locked.is_ok(),
        })
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.is_locked && self.context.make_current().is_ok() {
            // SAFETY: the driver locked these pages. An error leaves nothing to do.
            let _unlocked = unsafe { sys::cuMemHostUnregister(self.bytes.as_mut_ptr().cast()) };
        }
    }
}
