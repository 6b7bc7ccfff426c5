//! A hold before each call on a GPU: work that is launched behind it starts without waiting for the host.
//! [`gauntlet_calls::hold`] says why it is a kernel that ends by itself.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::rc::Rc;

use gauntlet_calls::hold::{CODE, ENTRY, THREADS};

use crate::driver::{Driver, Handle, checked};

/// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT and CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR.
const MULTIPROCESSORS: c_int = 16;
const MAX_THREADS: c_int = 39;

/// The kernel, for one device.
pub struct Hold {
    driver: Rc<Driver>,
    function: Handle,
    blocks: c_uint,
}

impl Hold {
    /// The hold of a device.
    ///
    /// # Errors
    /// If the driver does not take the kernel.
    pub fn new(driver: &Rc<Driver>, device: c_int) -> Result<Self, String> {
        let attribute = |which| -> Result<c_int, String> {
            let mut value = 0;
            // SAFETY: the driver fills the variable.
            let status = unsafe { (driver.attribute)(&raw mut value, which, device) };
            checked(status, "the size of the device cannot be read").map(|()| value)
        };
        let blocks = attribute(MULTIPROCESSORS)? * (attribute(MAX_THREADS)? / THREADS as c_int);
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver reads the text up to its null byte, and fills the variable.
        let status = unsafe { (driver.load_module)(&raw mut module, CODE.as_ptr().cast()) };
        checked(status, "the kernel that holds calls back cannot be loaded")?;
        // A name with a null byte within cannot exist; the driver finds no function without a name.
        let entry = CString::new(ENTRY).unwrap_or_default();
        // SAFETY: the module was loaded, the name ends with a null byte, and the driver fills the variable.
        let status = unsafe { (driver.find_function)(&raw mut function, module, entry.as_ptr()) };
        checked(status, "the kernel that holds calls back is not found")?;
        Ok(Self {
            driver: Rc::clone(driver),
            function,
            blocks: blocks.unsigned_abs(),
        })
    }

    /// Holds a stream back for this many nanoseconds; the hold ends by itself. Launches that take the host longer show as time
    /// of the call.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    pub fn begin(&self, mut nanoseconds: u64, stream: Handle) -> Result<(), String> {
        let mut arguments = [(&raw mut nanoseconds).cast::<c_void>()];
        // SAFETY: the kernel takes one number of eight bytes, which the driver copies before it returns; the stream is the
        // current one of torch.
        let status = unsafe {
            (self.driver.launch)(
                self.function,
                self.blocks,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        checked(status, "the stream cannot be held back")
    }
}
