//! Sleeping until a counter changes, by futexes.

use std::sync::atomic::AtomicU32;

use nix::libc;

/// Sleeps until woken if `count` equals `seen`; spurious wake-ups are possible.
pub(crate) fn wait(count: &AtomicU32, seen: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the counter lives throughout the call, which reads it atomically; the timeout pointer is null. Whatever
    // the call returns, the caller checks the counter again.
    unsafe { libc::syscall(libc::SYS_futex, count.as_ptr(), operation, seen, forever) };
}

/// Wakes all threads that sleep on `count`. The counter need not exist any more.
pub(crate) fn wake_all(count: *const AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the wake operation uses the address only as a key and does not read from it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            count.cast::<u32>().cast_mut(),
            operation,
            i32::MAX,
        )
    };
}
