//! The few functions of the CUDA driver that the loop needs, from the libcuda that torch has loaded already.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};

/// An address on the device.
pub type Address = u64;

/// A stream or an event of the driver.
pub type Handle = *mut c_void;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

macro_rules! driver {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// Functions of the driver; each returns 0, or the number of an error.
        pub struct Driver {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Driver {
            /// The driver of this machine.
            ///
            /// # Errors
            /// If there is none, or one without the functions of CUDA 11.
            pub fn open() -> Result<Self, String> {
                const NOW: c_int = 2;
                let library = c"libcuda.so.1";
                // SAFETY: the name ends with a null byte.
                let library = unsafe { dlopen(library.as_ptr(), NOW) };
                if library.is_null() {
                    return Err("the CUDA driver (libcuda.so.1) cannot be loaded".to_owned());
                }
                let find = |name: &str| {
                    let symbol = CString::new(name).unwrap_or_default();
                    // SAFETY: the library stays loaded, and the name ends with a null byte.
                    let found = unsafe { dlsym(library, symbol.as_ptr()) };
                    if found.is_null() {
                        Err(format!("the CUDA driver has no {name}; it is too old"))
                    } else {
                        Ok(found)
                    }
                };
                Ok(Self {
                    // SAFETY: each type is the one of the CUDA driver API's reference for this symbol.
                    $($field: unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(find($symbol)?) },)*
                })
            }
        }
    };
}

driver! {
    current_device = "cuCtxGetDevice": fn(*mut c_int);
    attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
    synchronize = "cuCtxSynchronize": fn();
    allocate = "cuMemAlloc_v2": fn(*mut Address, usize);
    free = "cuMemFree_v2": fn(Address);
    copy = "cuMemcpyDtoD_v2": fn(Address, Address, usize);
    copy_down = "cuMemcpyDtoH_v2": fn(*mut c_void, Address, usize);
    copy_up = "cuMemcpyHtoD_v2": fn(Address, *const c_void, usize);
    lock = "cuMemHostRegister_v2": fn(*mut c_void, usize, c_uint);
    unlock = "cuMemHostUnregister": fn(*mut c_void);
    load_module = "cuModuleLoadData": fn(*mut Handle, *const c_void);
    find_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
    launch = "cuLaunchKernel": fn(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    reset_persisting = "cuCtxResetPersistingL2Cache": fn();
    fill = "cuMemsetD8_v2": fn(Address, u8, usize);
    fill_on = "cuMemsetD8Async": fn(Address, u8, usize, Handle);
    create_event = "cuEventCreate": fn(*mut Handle, c_uint);
    record_event = "cuEventRecord": fn(Handle, Handle);
    wait_for_event = "cuEventSynchronize": fn(Handle);
    elapsed = "cuEventElapsedTime": fn(*mut f32, Handle, Handle);
}

/// CUDA_ERROR_OUT_OF_MEMORY.
const OUT_OF_MEMORY: c_int = 2;

/// CUDA_ERROR_NOT_SUPPORTED.
pub const NOT_SUPPORTED: c_int = 801;

/// Words by which the worker recognises a device without memory.
pub const NO_MEMORY: &str = "the device is out of memory";

/// The driver's status as a result; `what` names the call.
pub fn checked(status: c_int, what: &str) -> Result<(), String> {
    match status {
        0 => Ok(()),
        OUT_OF_MEMORY => Err(format!("{NO_MEMORY}: {what}")),
        status => Err(format!("{what}: the CUDA driver reports error {status}")),
    }
}
