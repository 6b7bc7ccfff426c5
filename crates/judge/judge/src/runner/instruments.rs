//! NVIDIA's tools that inspect kernels on a GPU: where they are, how a worker runs under them, and what they report.
//!
//! Each tool runs its own worker, and nothing is timed under a tool, because a tool slows down the program it inspects.
//! Both tools write into a file, since standard output belongs to the worker protocol.

mod counted;
mod counters;
mod launches;
mod sanitizer;

use std::path::{Path, PathBuf};

pub use counted::{CountedCall, KernelTimes, count_call};
pub use counters::read_counters;
pub use sanitizer::{TOOLS, check};

/// The tools found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instruments {
    /// `compute-sanitizer`.
    pub sanitizer: Option<PathBuf>,
    /// `ncu`, of Nsight Compute.
    pub profiler: Option<PathBuf>,
}

/// Advice if there is no `compute-sanitizer`.
pub const NO_SANITIZER: &str = "no compute-sanitizer here, so no race checker looked: it comes with the CUDA toolkit \
                                (Debian: cuda-sanitizer-13-0), and is sought on PATH and in /usr/local/cuda/bin";

/// Advice if there is no `ncu`.
pub const NO_PROFILER: &str = "no ncu here, so no counters: it comes with Nsight Compute (Debian: \
                               cuda-nsight-compute-13-0), and is sought on PATH and in /usr/local/cuda/bin";

impl Instruments {
    /// The tools on `PATH`, or in the CUDA toolkit's usual folders.
    pub fn find() -> Self {
        Self {
            sanitizer: program("compute-sanitizer"),
            profiler: program("ncu"),
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkit = std::env::var_os("CUDA_HOME").map(PathBuf::from);
    let usual = toolkit.into_iter().chain([PathBuf::from("/usr/local/cuda")]);
    std::env::split_paths(&path)
        .chain(usual.map(|folder| folder.join("bin")))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// The content of the file that a tool wrote in a worker's folder; empty if there is none.
fn log_of(folder: &Path, name: &str) -> String {
    let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
