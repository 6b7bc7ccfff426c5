//! The way of tensors between a coordinator that holds the worker and a GPU.
//!
//! The coordinator reaches memory of the host only. It writes operands there, and the loop copies them to the GPU; results
//! go the other way. Operands travel through memory of the GPU whose address the kernel is never given: the long copy over
//! the bus ends there, and a short one on the GPU brings all of them to where the kernel looks. So a kernel that is already
//! at work on the GPU cannot begin with the first bytes while the others are on their way.

use std::rc::Rc;

use gauntlet_calls::opening::BLOCK;

use crate::driver::{Driver, checked};
use crate::memory::{Block, DeviceBlock, Layout};
use crate::opener::Opener;

/// The way of all tensors of a task. Empty if the coordinator does not hold the worker.
#[derive(Default)]
pub struct Staging {
    /// For each input; none for those that stay on the device.
    operands: Vec<Option<Operand>>,
    /// For each output; none for those on the host.
    results: Vec<Option<HostBlock>>,
    opener: Option<Opener>,
}

impl Staging {
    /// Room for these inputs, each with whether its values differ between calls, and for outputs of these lengths, none for
    /// those on the host.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new<'b>(
        driver: &Rc<Driver>,
        inputs: impl Iterator<Item = (&'b Block, bool)>,
        outputs: impl Iterator<Item = Option<usize>>,
    ) -> Result<Self, String> {
        let operand = |(block, changes): (&Block, bool)| match block {
            Block::Device(block) if changes => Operand::like(driver, block).map(Some),
            _ => Ok(None),
        };
        Ok(Self {
            operands: inputs.map(operand).collect::<Result<_, _>>()?,
            results: outputs
                .map(|bytes| bytes.map(|bytes| HostBlock::new(driver, bytes)))
                .collect(),
            opener: Some(Opener::new(driver)?),
        })
    }

    /// Where the coordinator writes each input; none for those that it does not.
    pub fn addresses(&self) -> impl Iterator<Item = Option<u64>> {
        let address = |operand: &Operand| operand.host.address();
        self.operands
            .iter()
            .map(move |operand| operand.as_ref().map(address))
    }

    /// Copies what the coordinator has written to the device, to where no kernel looks.
    pub fn send(&self) -> Result<(), String> {
        self.operands.iter().flatten().try_for_each(Operand::send)
    }

    /// Opens what came sealed.
    pub fn open(&self, key: u64) -> Result<(), String> {
        let Some(opener) = &self.opener else {
            return Ok(());
        };
        let mut operands = self.operands.iter().flatten();
        operands.try_for_each(|operand| operand.open(opener, key))
    }

    /// Copies what was sent to these addresses on the device, all at once after the last has come over the bus.
    ///
    /// # Safety
    /// Each address has room for its input, and nothing else uses it meanwhile.
    pub unsafe fn reveal(&self, addresses: &[u64]) -> Result<(), String> {
        for (operand, address) in self.operands.iter().zip(addresses) {
            if let Some(operand) = operand {
                // SAFETY: the caller vouches for the address.
                unsafe { operand.reveal(*address) }?;
            }
        }
        Ok(())
    }

    /// Copies outputs that lie on the device to the host. Returns the place of each output there.
    ///
    /// # Safety
    /// The outputs lie where the layouts say; those on the device are in row-major order.
    pub unsafe fn bring_down(&mut self, outputs: &[Layout]) -> Result<Vec<Vec<i64>>, String> {
        let mut places = Vec::new();
        for (index, layout) in outputs.iter().enumerate() {
            places.push(match self.results.get_mut(index).and_then(Option::as_mut) {
                Some(block) => {
                    // SAFETY: the caller vouches for the tensor, which is as long as the block.
                    unsafe { block.take(layout.address) }?;
                    vec![block.address() as i64]
                }
                None => layout.place(),
            });
        }
        Ok(places)
    }
}

/// Memory of the host between the coordinator and a GPU.
struct HostBlock {
    driver: Rc<Driver>,
    bytes: Vec<u8>,
    /// Whether the driver has locked its pages.
    is_locked: bool,
}

impl HostBlock {
    /// A block of this many bytes. Its pages are locked where the driver allows it, which only makes copies faster.
    fn new(driver: &Rc<Driver>, bytes: usize) -> Self {
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
    fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }

    /// Copies as many bytes from an address on the device.
    ///
    /// # Safety
    /// As many bytes can be read there.
    unsafe fn take(&mut self, address: u64) -> Result<(), String> {
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
struct Operand {
    host: HostBlock,
    /// Where the copy over the bus ends: as long as whole blocks of a seal.
    hidden: DeviceBlock,
}

impl Operand {
    /// The way of an operand, which holds the values of `pristine` until the coordinator writes others.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn like(driver: &Rc<Driver>, pristine: &DeviceBlock) -> Result<Self, String> {
        let mut host = HostBlock::new(driver, pristine.bytes);
        // SAFETY: the block is as long as the memory of the host.
        unsafe { host.take(pristine.address) }?;
        let hidden = DeviceBlock::new(driver, pristine.bytes.next_multiple_of(BLOCK))?;
        Ok(Self { host, hidden })
    }

    /// Copies what the coordinator has written to the GPU, to where no kernel looks.
    fn send(&self) -> Result<(), String> {
        let bytes = &self.host.bytes;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the block on the device is at least as long as the memory of the host.
        let status =
            unsafe { (self.host.driver.copy_up)(self.hidden.address, bytes.as_ptr().cast(), bytes.len()) };
        checked(status, "an operand cannot be copied to the device")
    }

    /// Opens it there.
    fn open(&self, opener: &Opener, key: u64) -> Result<(), String> {
        let blocks = self.hidden.bytes / BLOCK;
        // SAFETY: the block is that long, and only this loop uses it.
        unsafe { opener.open(self.hidden.address, blocks, self.host.address(), key) }
    }

    /// Copies it from there to an address on the device.
    ///
    /// # Safety
    /// As many bytes can be written there, and nothing else uses them meanwhile.
    unsafe fn reveal(&self, address: u64) -> Result<(), String> {
        let bytes = self.host.bytes.len();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the target, and the block is at least as long.
        let status = unsafe { (self.host.driver.copy)(address, self.hidden.address, bytes) };
        checked(status, "a tensor cannot be copied")
    }
}
