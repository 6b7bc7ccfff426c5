//! Opens operands on the GPU that came sealed, because the kernel ran after they had come.
//!
//! `seal.rs` of the coordinator says how they are sealed, and why.

use std::ffi::{c_uint, c_void};
use std::rc::Rc;

use crate::driver::{Driver, Handle, checked};

/// Bytes that a thread opens at a time.
pub const BLOCK: usize = 16;

/// Threads of a block, and most blocks of a launch: enough to keep any device's memory busy.
const THREADS: usize = 256;
const MOST_BLOCKS: usize = 4096;

/// PTX, as the driver takes it: the text ends with a null byte.
const CODE: &str = concat!(include_str!("seal.ptx"), "\0");

/// The kernel, for the device of the current context.
pub struct Opener {
    driver: Rc<Driver>,
    function: Handle,
}

impl Opener {
    /// Loads the kernel.
    ///
    /// # Errors
    /// If the driver does not take it.
    pub fn new(driver: &Rc<Driver>) -> Result<Self, String> {
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver reads the text up to its null byte, and fills the variable.
        let status = unsafe { (driver.load_module)(&raw mut module, CODE.as_ptr().cast()) };
        checked(status, "the kernel that opens operands cannot be loaded")?;
        // SAFETY: the module was loaded, the name ends with a null byte, and the driver fills the variable.
        let status = unsafe { (driver.find_function)(&raw mut function, module, c"gauntlet_open".as_ptr()) };
        checked(status, "the kernel that opens operands is not found")?;
        Ok(Self {
            driver: Rc::clone(driver),
            function,
        })
    }

    /// Opens `blocks` blocks of [`BLOCK`] bytes each, on the default stream. `tensor` is the address of the host to which the
    /// coordinator wrote them.
    ///
    /// # Safety
    /// They lie at the address on the device, which is a multiple of [`BLOCK`], and nothing else uses them meanwhile.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    pub unsafe fn open(&self, address: u64, blocks: usize, tensor: u64, key: u64) -> Result<(), String> {
        if blocks == 0 {
            return Ok(());
        }
        let mut numbers = [address, blocks as u64, tensor, key];
        let mut arguments = numbers
            .each_mut()
            .map(|number| (&raw mut *number).cast::<c_void>());
        let groups = blocks.div_ceil(THREADS).min(MOST_BLOCKS) as c_uint;
        // SAFETY: the kernel takes four numbers of eight bytes, which the driver copies before it returns; the caller
        // vouches for the memory.
        let status = unsafe {
            (self.driver.launch)(
                self.function,
                groups,
                1,
                1,
                THREADS as c_uint,
                1,
                1,
                0,
                std::ptr::null_mut(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        checked(status, "operands cannot be opened")
    }
}
