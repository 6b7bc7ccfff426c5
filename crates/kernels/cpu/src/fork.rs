//! What each process makes for itself.
//!
//! A child of `fork` has a copy of the memory and only the thread that forked: threads of the parent's are missing there, and a
//! lock that one of them held is never released. So whatever has threads or locks is made again in the child.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use nix::libc;

/// A value that each process makes at its first use. A forked child makes a new one; the copy of its parent's is left alone, and
/// is never dropped there.
#[derive(Debug)]
pub struct PerProcess<T> {
    made: AtomicPtr<Made<T>>,
}

#[derive(Debug)]
struct Made<T> {
    generation: u32,
    value: T,
}

// SAFETY: it owns a `T`, as a box does.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: threads share the value by reference only, and a value made by one thread may be dropped by another.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Nothing is made yet.
    pub const fn new() -> Self {
        Self {
            made: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// This process's value. Of several threads that make it at the same time, one wins, and the values of the others are dropped.
    ///
    /// # Errors
    /// That of `make`.
    pub fn get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let generation = generation();
        let found = self.made.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from the box below, which is freed only by `drop`, with no reference left.
        match unsafe { found.as_ref() } {
            Some(made) if made.generation == generation => return Ok(&made.value),
            _ => {}
        }
        let value = make()?;
        let new = Box::into_raw(Box::new(Made { generation, value }));
        let kept = match self
            .made
            .compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: nobody else has this pointer.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
        // SAFETY: as above. It is not null, and of this generation: only threads of this process exchange the pointer.
        Ok(unsafe { &(*kept).value })
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        // SAFETY: null or from a box of `get`, and nobody refers to it any more.
        let is_own = unsafe { made.as_ref() }.is_some_and(|made| made.generation == generation());
        if is_own {
            // SAFETY: as above. A copy of a parent's is not dropped: that would wait for threads that do not exist here.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// How many forks there were between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

fn generation() -> u32 {
    static IS_WATCHING: AtomicBool = AtomicBool::new(false);
    if !IS_WATCHING.load(Ordering::Relaxed) && !IS_WATCHING.swap(true, Ordering::Relaxed) {
        // SAFETY: the function is one for a child of `fork`: it changes one atomic number, without a lock or an allocation.
        // Without memory for the entry, forks go unnoticed, as for a library that does not watch.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    FORKS.load(Ordering::Relaxed)
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;

    #[test]
    fn a_value_is_made_once_and_dropped_once() {
        static ALIVE: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl Drop for Counted {
            fn drop(&mut self) {
                ALIVE.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let place = PerProcess::new();
        let make = || {
            ALIVE.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Counted)
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| place.get(make).map(drop));
            }
        });
        assert_eq!(ALIVE.load(Ordering::Relaxed), 1);
        assert_eq!(place.get(|| Err("not again")).map(drop), Ok(()));
        drop(place);
        assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
        assert_eq!(PerProcess::<u8>::new().get(|| Err("no")), Err("no"));
    }

    /// The parent's lock is held while it forks, so that the child would wait for ever for its copy.
    #[test]
    #[cfg_attr(miri, ignore = "forks")]
    fn a_forked_child_has_its_own() {
        let place = PerProcess::<Mutex<u32>>::new();
        let number = |number| move || Ok::<_, Infallible>(Mutex::new(number));
        let Ok(parents) = place.get(number(1));
        let _held = parents.lock().unwrap();
        // SAFETY: the child takes a lock of its own and ends without running anything else.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let Ok(own) = place.get(number(2));
                let found = own.try_lock().map_or(0, |number| *number);
                // SAFETY: it ends the process at once.
                unsafe { libc::_exit(i32::try_from(found).unwrap_or(-1)) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 2));
            }
        }
    }
}
