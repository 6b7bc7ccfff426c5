//! The worker's files, and its start.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Solution, interpreter};

/// The Python files of the worker, by name.
const FILES: [(&str, &str); 7] = [
    (
        "worker.py",
        include_str!("../../../../../python/gauntlet/_host/worker.py"),
    ),
    (
        "tensors.py",
        include_str!("../../../../../python/gauntlet/_host/tensors.py"),
    ),
    (
        "own_modules.py",
        include_str!("../../../../../python/gauntlet/_host/own_modules.py"),
    ),
    (
        "case.py",
        include_str!("../../../../../python/gauntlet/_host/case.py"),
    ),
    (
        "kernel.py",
        include_str!("../../../../../python/gauntlet/_host/kernel.py"),
    ),
    (
        "pool.py",
        include_str!("../../../../../python/gauntlet/_host/pool.py"),
    ),
    (
        "failures.py",
        include_str!("../../../../../python/gauntlet/_host/failures.py"),
    ),
];

/// The native loop.
const LOOP: &[u8] = include_bytes!(env!("GAUNTLET_PYTHON_LOOP"));

/// Which libraries the worker imports before it answers its first request, and where the tensors of a built-in task lie;
/// the tasks of users say the latter themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tensors {
    /// On the host; numpy is imported.
    Cpu,
    /// On the host; torch is imported too.
    Torch,
    /// On a GPU; torch is imported, and opens the GPU.
    Cuda,
}

/// Becomes the worker of a function of a module, or of a file with an absolute path; `parameters` are a JSON object of
/// keyword arguments. The worker's files go into `folder`. Returns only if this fails.
pub fn exec(folder: &Path, place: &Path, function: &str, parameters: &str, tensors: Tensors) -> io::Error {
    match write(folder) {
        Ok(()) => interpreted(folder, tensors)
            .arg(place)
            .arg(function)
            .arg(parameters)
            .exec(),
        Err(error) => error,
    }
}

/// Becomes the worker of a solution, whose sources go into a folder of their own below `folder`. Returns only if this
/// fails.
pub fn exec_solution(folder: &Path, solution: &Solution, tensors: Tensors) -> io::Error {
    let root = folder.join("solution");
    let unpacked = write(folder).and_then(|()| solution.unpack(&root));
    let style = match solution.writes_outputs() {
        true => "destination",
        false => "returned",
    };
    match unpacked {
        Ok((file, function)) => interpreted(folder, tensors)
            .arg(file)
            .arg(function)
            .arg("{}")
            .arg(root)
            .arg(style)
            .exec(),
        Err(error) => error,
    }
}

/// The interpreter with the worker's program, without the kernel.
fn interpreted(folder: &Path, tensors: Tensors) -> Command {
    let mut command = Command::new(interpreter());
    command
        .arg(folder.join("worker.py"))
        .arg(folder.join("loop.so"))
        .arg(match tensors {
            Tensors::Cpu => "cpu",
            Tensors::Torch => "torch",
            Tensors::Cuda => "cuda",
        });
    command
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    fs::write(folder.join("loop.so"), LOOP)
}
