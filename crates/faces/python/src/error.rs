//! Errors and panics as Python exceptions.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gauntlet_kernels_cpu::{BuildError, EngineError, MoeError, RunError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// A value that is given is wrong.
pub fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Something outside the caller's control failed.
pub fn runtime(error: impl Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub fn engine(error: EngineError) -> PyErr {
    match error {
        EngineError::NoThreads | EngineError::TooManyThreads { .. } => value(error),
        error => runtime(error),
    }
}

pub fn build(error: BuildError) -> PyErr {
    match error {
        BuildError::OutOfMemory(_) | BuildError::WorkspaceTooLarge { .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        error => value(error),
    }
}

pub fn run(error: RunError) -> PyErr {
    match error {
        RunError::Plan(error) => build(error),
        RunError::OutOfMemory(_) | RunError::Result { .. } => PyMemoryError::new_err(error.to_string()),
        RunError::Spawn { .. } => runtime(error),
        error @ RunError::Mismatch { .. } => value(error),
    }
}

pub fn moe(error: MoeError) -> PyErr {
    match error {
        MoeError::Build(error) => build(error),
        MoeError::Run(error) => run(error),
        error => value(error),
    }
}

/// Runs `work` without the interpreter's lock; a panic becomes a `RuntimeError`.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal(&*panic))))
}

/// The exception of a panic.
pub fn internal(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    runtime(format!(
        "an error inside gauntlet: {}; please report it with the call that led to it",
        text.unwrap_or("no message")
    ))
}
