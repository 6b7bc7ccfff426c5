//! Why a source is not compiled.

use std::path::PathBuf;

use thiserror::Error;

use crate::compiler::LIBRARIES_VARIABLE;

/// Why a source has no machine code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// There is no NVRTC.
    #[error(
        "no CUDA compiler: libnvrtc.so is not under {}, and the dynamic linker does not find it; run scripts/install-cuda-compiler, or set \
         {LIBRARIES_VARIABLE} to the folder that holds it",
        list(looked)
    )]
    NoCompiler {
        /// Folders without one.
        looked: Vec<PathBuf>,
    },
    /// It cannot be loaded.
    #[error(
        "{path} cannot be used as the CUDA compiler: {message}; set {LIBRARIES_VARIABLE} to a folder with another"
    )]
    Library {
        /// The library.
        path: PathBuf,
        /// What the dynamic linker said.
        message: String,
    },
    /// A folder for kernels that are compiled beforehand cannot be written.
    #[error("kernels cannot be written: {message}; give a folder that can be written")]
    Folder {
        /// The folder, and why.
        message: String,
    },
    /// The program has no such kernel, or none for the architecture.
    #[error("{0}")]
    Impossible(String),
    /// The code is wrong.
    #[error("{variant} does not compile: {place}: {message}\n{log}")]
    Rejected {
        /// The variant.
        variant: String,
        /// File and line, where the compiler told.
        place: String,
        /// The first error.
        message: String,
        /// All that the compiler wrote.
        log: String,
    },
    /// A user's source has no such kernel.
    #[error(
        "{file} compiles, but has no kernel `{kernel}`: a kernel is a `__global__` function, named with its namespace"
    )]
    NoKernel {
        /// The file.
        file: String,
        /// The kernel looked for.
        kernel: String,
    },
    /// The compiler itself failed.
    #[error("the CUDA compiler failed in {call}: {name}; `gauntlet doctor` tells which one is in use\n{log}")]
    Broken {
        /// The function.
        call: &'static str,
        /// NVRTC's name of the error.
        name: String,
        /// All that the compiler wrote.
        log: String,
    },
    /// A source or an option that C cannot express.
    #[error("a source or a definition contains a zero byte")]
    ZeroByte,
}

impl CompileError {
    /// Whether the error is specific to this kernel: another may compile with the same compiler.
    pub fn is_of_the_kernel(&self) -> bool {
        match self {
            Self::Impossible(_) | Self::Rejected { .. } | Self::NoKernel { .. } | Self::ZeroByte => true,
            Self::NoCompiler { .. } | Self::Library { .. } | Self::Folder { .. } | Self::Broken { .. } => {
                false
            }
        }
    }
}

fn list(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    names.join(", ")
}
