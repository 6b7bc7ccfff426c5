//! Opens operands on the GPU that came sealed, because the kernel ran after they had come.

use gauntlet_calls::opening::{BLOCK, CODE, ENTRY, THREADS, groups};
use gauntlet_cuda::driver::{Context, DeviceMemory, Dimensions, DriverError, Function, Stream};

/// The kernel, for one device.
#[derive(Debug)]
pub(crate) struct Opener(Function);

impl Opener {
    /// Loads the kernel.
    ///
    /// # Errors
    /// If the driver does not take it.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        Function::new(context, CODE.as_bytes(), ENTRY, ENTRY, THREADS, 0).map(Self)
    }

    /// Queues the opening of all whole blocks of [`BLOCK`] bytes in the memory. `tensor` is the address of the host to which
    /// the coordinator wrote them.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    pub fn queue(
        &self,
        memory: &DeviceMemory,
        tensor: u64,
        key: u64,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        let blocks = memory.bytes() / BLOCK;
        if blocks == 0 {
            return Ok(());
        }
        let dimensions = Dimensions {
            grid: [groups(blocks), 1, 1],
            block: [THREADS, 1, 1],
            cluster: [1, 1, 1],
        };
        let numbers = [memory.address(), blocks as u64, tensor, key].map(u64::to_le_bytes);
        let arguments = numbers.each_ref().map(<[u8; 8]>::as_slice);
        // SAFETY: the kernel takes these four numbers, and accesses only the blocks, which lie in the memory. The driver
        // waits for the kernel before the memory is freed.
        unsafe { self.0.launch_with(dimensions, &arguments, stream) }
    }
}
