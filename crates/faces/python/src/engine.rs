//! The process's one engine: threads, and the kernels that were built last.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use gauntlet_kernels_cpu::{Engine, EngineOptions, Kernel, PerProcess};
use gauntlet_problems::{Operation, Schedule};
use lru::LruCache;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::error;

/// Kernels that stay ready, each with its workspace.
const KERNELS: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

/// A forked child has one of its own: another thread of its parent's may have held the lock.
static RUNNING: PerProcess<Mutex<Option<Running>>> = PerProcess::new();

/// The threads that were asked for; 0 for one on each processor.
static THREADS: AtomicUsize = AtomicUsize::new(0);

struct Running {
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
    let Ok(running) = RUNNING.get(|| Ok::<_, Infallible>(Mutex::default()));
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *running {
        Some(running) => work(running),
        none => work(none.insert(start(
            Some(THREADS.load(Ordering::Relaxed)).filter(|&threads| threads > 0),
        )?)),
    }
}

fn start(threads: Option<usize>) -> PyResult<Running> {
    let options = EngineOptions {
        threads,
        ..EngineOptions::default()
    };
    Ok(Running {
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
pub fn set_threads(py: Python<'_>, threads: &Bound<'_, PyAny>) -> PyResult<()> {
    let threads = match threads.extract::<usize>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            let most = EngineOptions::MAX_THREADS;
            return Err(error::value(format!(
                "threads: it is {threads}; give 1 to {most}"
            )));
        }
        threads => threads?,
    };
    error::detached(py, || {
        with_running(|running| {
            *running = start(Some(threads))?;
            THREADS.store(threads, Ordering::Relaxed);
            Ok(())
        })
    })
}
