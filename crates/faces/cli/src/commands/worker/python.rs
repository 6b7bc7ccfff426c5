//! The worker of a Python kernel.

use std::env;
use std::path::Path;

use gauntlet_host_python::{Solution, Tensors, VARIABLE, exec, exec_solution, interpreter};

use crate::arguments::WorkerTensors;
use crate::error::CliError;
use crate::exit::Exit;
use crate::kernel_text::SOLUTION;

/// The folder of the worker's own files, in its working directory.
const FOLDER: &str = "gauntlet-host";

/// Becomes the Python interpreter that serves the kernel.
pub fn serve(kernel: &str, tensors: WorkerTensors) -> Result<Exit, CliError> {
    let here = env::current_dir()
        .map_err(|error| CliError::broken(format!("the working directory cannot be found: {error}")))?;
    let tensors = match tensors {
        WorkerTensors::Cpu => Tensors::Cpu,
        WorkerTensors::Torch => Tensors::Torch,
        WorkerTensors::Cuda => Tensors::Cuda,
    };
    let folder = here.join(FOLDER);
    let error = match kernel.ends_with(SOLUTION) {
        true => {
            let solution = Solution::read(Path::new(kernel))
                .map_err(|error| CliError::bad_input(error.to_string(), error.remedy()))?;
            exec_solution(&folder, &solution, tensors)
        }
        false => exec(&folder, kernel, tensors),
    };
    Err(CliError::bad_input(
        format!(
            "the Python interpreter {} does not start: {error}",
            interpreter().display()
        ),
        format!("install Python 3.9 or newer, or name one by {VARIABLE}"),
    ))
}
