//! The arguments of `task`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `task`.
#[derive(Debug, Args)]
pub struct TaskArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: TaskCommand,
}

/// What to do with a task.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Write a folder with a task, kernels, a test and a README to begin with; it passes its own audit.
    #[command(after_help = "\
Examples:
  gauntlet task new silu
  gauntlet task new silu --kernels cuda")]
    New {
        /// The folder, which must not exist; its last part is the task's name.
        folder: PathBuf,
        /// What the kernels are written in.
        #[arg(long, value_enum, default_value = "numpy")]
        kernels: Kernels,
    },
}

/// What the kernels of a new task are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kernels {
    /// Python with numpy.
    Numpy,
    /// Python with PyTorch, on a GPU if there is one.
    Torch,
    /// CUDA C++.
    Cuda,
}
