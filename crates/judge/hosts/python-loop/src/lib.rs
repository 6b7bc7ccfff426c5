//! The loop that calls a Python kernel, as a shared library that the worker loads into the interpreter with
//! `ctypes.PyDLL`.
//!
//! The kernel is only called: this library owns the clock, the inputs between calls, and the results. Nothing between
//! the begin and the end of a timed request passes through Python code that a kernel could replace:
//!
//! 1. `gauntlet_bind` takes the task: the exact type of tensors, how to look at one, and the tree of results.
//! 2. `gauntlet_load` copies the inputs to memory that the kernel never sees.
//! 3. `gauntlet_run` does, for each call: restore or place the inputs, fill outputs that are written in place, clear the
//!    second-level cache of a GPU, read the clock, call, synchronise, read the clock, and copy the result away. On a GPU the
//!    call is launched behind a hold (module `hold`), and its time is the device's.
//! 4. `gauntlet_write` writes the result of one of these calls to a file.
//!
//! If the coordinator holds the worker, it clocks each call by itself: `gauntlet_run` takes turns with it before and after
//! each, and keeps no results, because the coordinator reads those that it has drawn. Tensors on a GPU then go through
//! memory of the host (module `staging`), for which `gauntlet_hold` makes room.
//!
//! Right before a call the coordinator may ask for a load: calls on other operands, back to back, of which nothing is kept. On
//! a GPU the operands of the call in earnest have come by then, and are sealed until the load is over (module `opener`).
//!
//! `gauntlet_trace` turns the trace of the device's activity on or off (`gauntlet_calls::Tracer`); while it is on, calls are not timed, and
//! come with what the device did in them.
//!
//! The functions of Python are found in the running interpreter (module `python`), those of the CUDA driver in libcuda
//! (module `driver`), so the library needs neither to be compiled.

mod calls;
mod device;
#[cfg(test)]
mod device_tests;
mod driver;
mod hold;
mod memory;
mod opener;
mod python;
mod results;
mod staging;

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use calls::Host;
use python::{Failed, Object, Pointer, Python};

thread_local! {
    /// The task bound last. It is never dropped at the end of the thread: the interpreter is gone by then.
    static HOST: RefCell<Option<ManuallyDrop<Host>>> = const { RefCell::new(None) };
}

/// Runs `work` on the arguments of a call from Python.
///
/// # Safety
/// The interpreter's lock is held, and `arguments` points to a live object.
unsafe fn answer(
    arguments: Pointer,
    work: impl FnOnce(Python, &Object, &mut Option<ManuallyDrop<Host>>) -> Result<Object, Failed>,
) -> Pointer {
    // SAFETY: the caller vouches for it.
    let Some(python) = (unsafe { Python::here() }) else {
        return std::ptr::null_mut();
    };
    let outcome = HOST.with(|host| {
        // A kernel that calls this library from within a call finds it in use.
        let mut host = host
            .try_borrow_mut()
            .map_err(|_| Failed::Because("the loop is in use".to_owned()))?;
        // SAFETY: the caller vouches for it.
        let arguments = unsafe { python.lent(arguments) }?;
        work(python, &arguments, &mut host)
    });
    python.answer(outcome)
}

fn bound(host: &mut Option<ManuallyDrop<Host>>) -> Result<&mut Host, Failed> {
    host.as_deref_mut()
        .ok_or_else(|| Failed::Because("no task is bound".to_owned()))
}

/// Takes a task; see `Host::new` for the tuple. Returns None.
///
/// # Safety
/// Only for `ctypes.PyDLL`: the interpreter's lock is held, and the argument is a live object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_bind(task: Pointer) -> Pointer {
    let work = |python: Python, task: &Object, host: &mut Option<ManuallyDrop<Host>>| {
        let new = Host::new(python, task)?;
        if let Some(old) = host.replace(ManuallyDrop::new(new)) {
            drop(ManuallyDrop::into_inner(old));
        }
        python.none()
    };
    // SAFETY: the caller vouches for it.
    unsafe { answer(task, work) }
}

/// Takes the inputs of all files; see `Host::load`.
///
/// # Safety
/// As [`gauntlet_bind`], and all addresses are of live tensors of the given lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_load(files: Pointer) -> Pointer {
    // SAFETY: the caller vouches for it.
    unsafe { answer(files, |python, files, host| bound(host)?.load(python, files)) }
}

/// Makes room for operands that the coordinator writes; see `Host::hold`.
///
/// # Safety
/// As [`gauntlet_bind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_hold(changing: Pointer) -> Pointer {
    // SAFETY: the caller vouches for it.
    unsafe {
        answer(changing, |python, changing, host| {
            bound(host)?.hold(python, changing)
        })
    }
}

/// Turns tracing on or off; see `Host::trace`.
///
/// # Safety
/// As [`gauntlet_bind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_trace(is_on: Pointer) -> Pointer {
    // SAFETY: the caller vouches for it.
    unsafe { answer(is_on, |python, is_on, host| bound(host)?.trace(python, is_on)) }
}

/// Makes the calls; see `Host::run`. The times of a call are a tuple with the seconds of the call, of what was done before
/// and after it, and of what the device did in it.
///
/// # Safety
/// As [`gauntlet_load`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_run(request: Pointer) -> Pointer {
    // SAFETY: the caller vouches for it.
    unsafe { answer(request, |python, request, host| bound(host)?.run(python, request)) }
}

/// Writes the result of a call to a file; see `Host::write`. Returns the bytes of the tensors.
///
/// # Safety
/// As [`gauntlet_bind`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_write(request: Pointer) -> Pointer {
    // SAFETY: the caller vouches for it.
    unsafe {
        answer(request, |python, request, host| {
            bound(host)?.write(python, request)
        })
    }
}
