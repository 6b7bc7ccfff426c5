//! Sleeping until a counter changes, by the system's futexes.

use std::sync::atomic::AtomicU32;

use nix::libc;

/// Sleeps while `count` is `seen`, or until woken; may also return for no reason.
pub(crate) fn wait(count: &AtomicU32, seen: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the counter lives throughout the call, which reads it atomically and has no deadline to read. Whatever it returns,
    // the caller looks at the counter again.
    unsafe { libc::syscall(libc::SYS_futex, count.as_ptr(), operation, seen, forever) };
}

/// Wakes everybody who sleeps on `count`, which need not be there any longer.
pub(crate) fn wake_all(count: *const AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking takes the address as a name, and reads nothing there.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            count.cast::<u32>().cast_mut(),
            operation,
            i32::MAX,
        )
    };
}
