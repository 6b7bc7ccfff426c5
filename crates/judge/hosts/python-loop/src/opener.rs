//! Opens operands on the GPU that came sealed, because the kernel ran after they had come.
//!
//! [`gauntlet_calls::seal`] says how they are sealed, and why.

use std::ffi::{CString, c_void};
use std::rc::Rc;

use gauntlet_calls::opening::{CODE, ENTRY, THREADS, groups};

use crate::driver::{Driver, Handle, checked};

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
        // A name with a null byte within cannot exist; the driver finds no function without a name.
        let entry = CString::new(ENTRY).unwrap_or_default();
        // SAFETY: the module was loaded, the name ends with a null byte, and the driver fills the variable.
        let status = unsafe { (driver.find_function)(&raw mut function, module, entry.as_ptr()) };
        checked(status, "the kernel that opens operands is not found")?;
        Ok(Self {
            driver: Rc::clone(driver),
            function,
        })
    }

    /// Opens `blocks` blocks of [`BLOCK`](gauntlet_calls::opening::BLOCK) bytes each, on the default stream. `tensor` is the address of the host to which the
    /// coordinator wrote them.
    ///
    /// # Safety
    /// They lie at the address on the device, which is a multiple of their length, and nothing else uses them meanwhile.
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
        // SAFETY: the kernel takes four numbers of eight bytes, which the driver copies before it returns; the caller
        // vouches for the memory.
        let status = unsafe {
            (self.driver.launch)(
                self.function,
                groups(blocks),
                1,
                1,
                THREADS,
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
