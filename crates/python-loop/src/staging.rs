//! The way of tensors between a coordinator that holds the worker and a GPU.
//!
//! The coordinator reaches memory of the host only. It writes operands there, and the loop copies them to the GPU; results
//! go the other way. Operands travel through memory of the GPU whose address the kernel is never given: the long copy over
//! the bus ends there, and a short one on the GPU brings all of them to where the kernel looks. So a kernel that is already
//! at work on the GPU cannot begin with the first bytes while the others are on their way.

use std::rc::Rc;

use crate::driver::{Driver, checked};
use crate::memory::{Block, DeviceBlock};

/// Memory of the host between the coordinator and a GPU.
pub struct HostBlock {
    driver: Rc<Driver>,
    bytes: Vec<u8>,
    /// Whether the driver has locked its pages.
    is_locked: bool,
}

impl HostBlock {
    /// A block of this many bytes. Its pages are locked where the driver allows it, which only makes copies faster.
    pub fn new(driver: &Rc<Driver>, bytes: usize) -> Self {
        let mut bytes = vec![0_u8; bytes];
        // SAFETY: the memory belongs to this block, which unlocks it before it is freed.
        let status = unsafe { (driver.lock)(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        Self {
            driver: Rc::clone(driver),
            bytes,
            is_locked: status == 0,
        }
    }

    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    /// Copies as many bytes from an address on the device.
    ///
    /// # Safety
    /// As many bytes can be read there.
    pub unsafe fn take(&mut self, address: u64) -> Result<(), String> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller vouches for the source, and the target is as long as the bytes that are copied.
        let status =
            unsafe { (self.driver.copy_down)(self.bytes.as_mut_ptr().cast(), address, self.bytes.len()) };
        checked(status, "a tensor cannot be copied from the device")
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if self.is_locked {
            // SAFETY: the driver locked these pages. An error leaves nothing to do.
            let _unlocked = unsafe { (self.driver.unlock)(self.bytes.as_mut_ptr().cast()) };
        }
    }
}

/// An operand on its way to the GPU.
pub struct Operand {
    host: HostBlock,
    /// Where the copy over the bus ends.
    hidden: Block,
}

impl Operand {
    /// The way of an operand, which holds the values of `pristine` until the coordinator writes others.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn like(driver: &Rc<Driver>, pristine: &DeviceBlock) -> Result<Self, String> {
        let mut host = HostBlock::new(driver, pristine.bytes);
        // SAFETY: the block is as long as the memory of the host.
        unsafe { host.take(pristine.address) }?;
        Ok(Self {
            host,
            hidden: Block::new(Some(driver), pristine.bytes)?,
        })
    }

    /// Where the coordinator writes.
    pub fn address(&self) -> u64 {
        self.host.address()
    }

    /// Copies what the coordinator has written to the GPU, to where no kernel looks.
    pub fn send(&self) -> Result<(), String> {
        let Block::Device(hidden) = &self.hidden else {
            return Ok(());
        };
        let bytes = &self.host.bytes;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the block on the device is as long as the memory of the host.
        let status =
            unsafe { (self.host.driver.copy_up)(hidden.address, bytes.as_ptr().cast(), bytes.len()) };
        checked(status, "an operand cannot be copied to the device")
    }

    /// Copies it from there to an address on the device.
    ///
    /// # Safety
    /// As many bytes can be written there, and nothing else uses them meanwhile.
    pub unsafe fn reveal(&self, address: u64) -> Result<(), String> {
        // SAFETY: the caller vouches for the target.
        unsafe { self.hidden.give(address) }
    }
}
