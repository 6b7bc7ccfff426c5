//! Why a kernel cannot be served.

use std::path::PathBuf;

use gauntlet_cuda::CompileError;
use gauntlet_cuda::driver::DriverError;
use thiserror::Error;

/// Why a kernel cannot be served.
#[derive(Debug, Error)]
pub enum KernelError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}; check the path")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no launch table.
    #[error(
        "{path} is missing: it says how the kernels of {cu} are launched; write a table such as\n[{kernel}]\narguments = \
         [\"x\", \"y\", \"int rows\"]\ngrid = [\"rows\"]\nblock = [256]"
    )]
    NoTable {
        /// The table.
        path: PathBuf,
        /// The source.
        cu: PathBuf,
        /// The kernel.
        kernel: String,
    },
    /// The table has no entry for the kernel.
    #[error("{path} has no table for the kernel `{kernel}`{meant}; its tables are {known}")]
    NoEntry {
        /// The table.
        path: PathBuf,
        /// The kernel.
        kernel: String,
        /// The likely intention.
        meant: String,
        /// The entries.
        known: String,
    },
    /// The table is wrong.
    #[error("{path}: {place}{message}")]
    Table {
        /// The table.
        path: PathBuf,
        /// The key, with a colon behind it, or nothing if the message has the place.
        place: String,
        /// The error and the remedy.
        message: String,
    },
    /// The compiler is missing.
    #[error(transparent)]
    Compiler(#[from] CompileError),
    /// There is no GPU.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
