//! The process's one engine: threads, and the kernels that were built last.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use gauntlet_kernels_cpu::{Engine, EngineOptions, Kernel};
use gauntlet_operations::{Operation, Schedule};
use lru::LruCache;
use pyo3::prelude::*;

use crate::error;

/// Kernels that stay ready, each with its workspace.
const KERNELS: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

struct Running {
    /// The process whose threads these are: a forked child inherits the memory but not the threads.
    process: u32,
    engine: Engine,
    kernels: LruCache<Operation, Kernel>,
}

/// Calls `work` with the kernel of an operation. One call runs at a time; each uses all threads.
pub fn with_kernel<T>(
    operation: Operation,
    schedule: impl FnOnce(&Engine) -> Schedule,
    work: impl FnOnce(&mut Kernel) -> PyResult<T>,
) -> PyResult<T> {
    with_running(|running| {
        if !running.kernels.contains(&operation) {
            let schedule = schedule(&running.engine);
            let built = running.engine.build(&operation, &schedule);
            running
                .kernels
                .put(operation.clone(), built.map_err(error::build)?);
        }
        match running.kernels.get_mut(&operation) {
            Some(kernel) => work(kernel),
            None => Err(error::runtime("the kernel was not kept")),
        }
    })
}

/// Calls `work` with the engine. One call runs at a time.
pub fn with_engine<T>(work: impl FnOnce(&Engine) -> PyResult<T>) -> PyResult<T> {
    with_running(|running| work(&running.engine))
}

fn with_running<T>(work: impl FnOnce(&mut Running) -> PyResult<T>) -> PyResult<T> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(other) = running.take_if(|running| running.process != process) {
        // Dropping it would wait for threads that this process does not have.
        std::mem::forget(other);
    }
    match &mut *running {
        Some(running) => work(running),
        none => work(none.insert(start(None)?)),
    }
}

fn start(threads: Option<usize>) -> PyResult<Running> {
    let options = EngineOptions {
        threads,
        ..EngineOptions::default()
    };
    Ok(Running {
        process: std::process::id(),
        engine: Engine::new(options).map_err(error::engine)?,
        kernels: LruCache::new(KERNELS),
    })
}

/// The number of threads of the CPU kernels.
#[pyfunction]
pub fn threads(py: Python<'_>) -> PyResult<usize> {
    error::detached(py, || with_running(|running| Ok(running.engine.threads())))
}

/// Sets the number of threads of the CPU kernels.
#[pyfunction]
pub fn set_threads(py: Python<'_>, threads: usize) -> PyResult<()> {
    error::detached(py, || {
        with_running(|running| {
            *running = start(Some(threads))?;
            Ok(())
        })
    })
}
