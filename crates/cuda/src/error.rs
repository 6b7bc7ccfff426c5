//! Why a kernel is refused.

use std::path::PathBuf;

use gauntlet_device::Arch;
use thiserror::Error;

use crate::compiler::LIBRARIES_VARIABLE;

/// Why a variant has no machine code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompileError {
    /// There is no NVRTC.
    #[error(
        "no CUDA compiler: neither the dynamic linker nor {} has libnvrtc.so; run scripts/install-cuda-compiler, or set \
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
    /// The device code is for another architecture.
    #[error(
        "{variant} cannot be built for {arch}: its instructions (wgmma, bulk copies) are those of sm_90a alone"
    )]
    Architecture {
        /// The variant.
        variant: String,
        /// The architecture asked for.
        arch: Arch,
    },
    /// No such kernel in this build.
    #[error("{variant}: this build of Gauntlet has no kernel of that name")]
    NoSource {
        /// The variant.
        variant: String,
    },
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
    /// It compiles, but not to the kernel.
    #[error("{variant} compiles, but its source has no kernel `{entry}`; kernels are named as their files")]
    NoEntry {
        /// The variant.
        variant: String,
        /// The kernel looked for.
        entry: String,
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

fn list(folders: &[PathBuf]) -> String {
    let names: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    names.join(", ")
}
