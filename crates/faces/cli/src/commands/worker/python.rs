//! The worker of a Python kernel.

use std::env;

use gauntlet_host_python::{Solution, Tensors, VARIABLE, exec, exec_solution, interpreter};
use gauntlet_judge::{FileKernel, FileKind, KernelForm};

use crate::arguments::WorkerTensors;
use crate::error::CliError;
use crate::exit::Exit;

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
    let kernel = gauntlet_entrants::read(kernel)?;
    let error = match kernel.form() {
        KernelForm::Solution(file) => {
            let solution = Solution::read(file)
                .map_err(|error| CliError::bad_input(error.to_string(), error.remedy()))?;
            exec_solution(&folder, &solution, tensors)
        }
        KernelForm::Module { module, function } => exec(&folder, module.as_ref(), function, "{}", tensors),
        KernelForm::File(FileKernel {
            kind: FileKind::Python,
            file,
            function,
            parameters,
        }) => {
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            let parameters = serde_json::to_string(parameters).map_err(|error| {
                CliError::broken(format!("the parameters of {kernel} cannot be written: {error}"))
            })?;
            exec(&folder, &file, function, &parameters, tensors)
        }
        _ => {
            return Err(CliError::bad_input(
                format!("this worker does not serve `{kernel}`"),
                "name a Python function or a solution",
            ));
        }
    };
    Err(CliError::bad_input(
        format!(
            "the Python interpreter {} does not start: {error}",
            interpreter().display()
        ),
        format!("install Python 3.9 or newer, or name one by {VARIABLE}"),
    ))
}
