//! The kernel that holds a call on a GPU back until the host has launched it.
//!
//! Without it, a kernel that is launched on an idle device starts only when the host has processed the launch, and the
//! time between two events is mostly that of Python. The host must not decide when the hold ends: a candidate's function
//! may wait for the device during its call, and would wait forever for a hold that ends after the call. So the hold is a
//! kernel that ends by itself, after the nanoseconds that are its only parameter. It has as many threads as the device can
//! hold at a time, so that no block of another kernel starts before it has ended; copies by the copy engines are not held
//! back.

/// PTX, as the driver takes it: the text ends with a null byte.
pub const CODE: &str = concat!(include_str!("hold.ptx"), "\0");

/// The name of the kernel.
pub const ENTRY: &str = "gauntlet_hold_back";

/// Threads of a block: every device's multiprocessor holds a multiple.
pub const THREADS: u32 = 512;
