//! Tasks by name or file.

use std::path::Path;

use gauntlet_host_python::Tensors;
use gauntlet_python_task::Options;
use gauntlet_task::Suite;

use crate::error::EntrantError;
use crate::source::FileError;

/// A suite by name or file, or the suite of a task in Python.
///
/// # Errors
/// If there is no such task, or it cannot be read.
pub fn find_task(name: &str) -> Result<Suite, EntrantError> {
    find_task_with(name, &Options::default())
}

/// The same; the options say which cases of a task in Python are wanted, and what stands in for its reference.
///
/// # Errors
/// If there is no such task, or it cannot be read.
pub fn find_task_with(name: &str, options: &Options) -> Result<Suite, EntrantError> {
    if gauntlet_python_task::is_task(Path::new(name)) {
        return Ok(gauntlet_python_task::open(Path::new(name), options)?);
    }
    let found = if name.ends_with(".toml") {
        gauntlet_families::load_suite(Path::new(name))
    } else {
        gauntlet_families::suite(name)
    };
    Ok(found.map_err(|error| {
        FileError::of_suite(error, |message, remedy| {
            FileError::whole(Path::new(name), message, remedy)
        })
    })?)
}

/// What workers of Python kernels import at their start: the libraries of the task's tensors.
pub fn tensors_of(suite: &Suite, on_gpu: bool) -> Tensors {
    let is_torch = |sizes: serde_json::Value| sizes.get("library").is_some_and(|library| library == "torch");
    if on_gpu {
        Tensors::Cuda
    } else if suite.benchmark.iter().any(|case| is_torch(case.sizes.record())) {
        Tensors::Torch
    } else {
        Tensors::Cpu
    }
}
