//! Status codes, and the words of the last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of a call; the header lists the same codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// An argument is wrong.
    BadArgument = 1,
    /// This machine cannot do it.
    Unsupported = 2,
    /// There is not enough memory.
    OutOfMemory = 3,
    /// The CUDA driver reports an error.
    Driver = 4,
    /// An error inside Gauntlet.
    Internal = 5,
}

/// An error with its code.
pub struct Failure(pub Status, pub String);

impl Failure {
    pub fn argument(error: impl Display) -> Self {
        Self(Status::BadArgument, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs `work`; its error, or its panic, becomes the calling thread's last error.
pub fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = format!(
            "an error inside Gauntlet: {}; please report it",
            text.unwrap_or("no message")
        );
        Err(Failure(Status::Internal, text))
    });
    let (status, words) = match outcome {
        Ok(()) => (Status::Ok, String::new()),
        Err(Failure(status, words)) => (status, words),
    };
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = words);
    status
}

/// The words of the calling thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn gauntlet_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// A reference to what a pointer points to; an error that names it if it is null.
///
/// # Safety
/// The pointer must be null or point to a valid `T` that outlives the reference.
pub unsafe fn reference<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller promises a valid pointer unless it is null.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// The elements that a pointer points to; an error that names it if it is null and there should be some.
///
/// # Safety
/// The pointer must be null or point to `count` valid elements that outlive the slice.
pub unsafe fn elements<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and the caller promises `count` valid elements.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Hands an object to C.
///
/// # Safety
/// The pointer must be null or writable.
pub unsafe fn hand_over<T>(object: T, place: *mut *mut T, name: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and the caller promises that it is writable.
    unsafe { place.write(Box::into_raw(Box::new(object))) };
    Ok(())
}

/// Takes an object back from C and drops it; null is nothing. A panic while dropping is an error nobody can be told.
///
/// # Safety
/// The pointer must be null or come from [`hand_over`], and not be used again.
pub unsafe fn destroy<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller promises that it comes from a box and is not used again.
        let object = unsafe { Box::from_raw(object) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}

pub fn null(name: &str) -> Failure {
    Failure::argument(format!("{name} is null; give an address"))
}

/// A product of sizes that C gives; an error if it is more than can be addressed.
pub fn product(sizes: &[usize]) -> Result<usize, Failure> {
    let product = sizes
        .iter()
        .try_fold(1usize, |product, &size| product.checked_mul(size));
    product
        .filter(|&product| product <= isize::MAX as usize / 8)
        .ok_or_else(|| {
            Failure::argument(format!(
                "the sizes {sizes:?} multiply to more than can be addressed"
            ))
        })
}
