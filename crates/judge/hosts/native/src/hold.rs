//! A hold before each call on a GPU: work that is launched behind it starts without waiting for the host.
//!
//! [`gauntlet_calls::hold`] says why it is a kernel that ends by itself. A hold that is a wait for a word of the host's memory
//! took 14 µs on an H100 to let a kernel of 1 µs begin (`results/h100/device-times/2026-11-26.json`).

use gauntlet_calls::hold::{CODE, ENTRY, THREADS};
use gauntlet_cuda::driver::{Context, Dimensions, DriverError, Function, Stream};

/// The kernel, for one device.
#[derive(Debug)]
pub(crate) struct Hold {
    function: Function,
    blocks: u32,
}

impl Hold {
    /// The hold of a device.
    ///
    /// # Errors
    /// If the driver does not take the kernel.
    pub fn new(context: &Context) -> Result<Self, DriverError> {
        let device = context.device();
        Ok(Self {
            function: Function::new(context, CODE.as_bytes(), ENTRY, ENTRY, THREADS, 0)?,
            blocks: device.processors * (device.processor_threads / THREADS).max(1),
        })
    }

    /// Holds a stream back for this many seconds; the hold ends by itself.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    pub fn begin(&self, seconds: f64, stream: &Stream) -> Result<(), DriverError> {
        let dimensions = Dimensions {
            grid: [self.blocks, 1, 1],
            block: [THREADS, 1, 1],
            cluster: [1, 1, 1],
        };
        let nanoseconds = (1e9 * seconds) as u64;
        // SAFETY: the kernel takes one number of eight bytes, and accesses no memory.
        unsafe {
            self.function
                .launch_with(dimensions, &[&nanoseconds.to_le_bytes()], stream)
        }
    }
}
