//! Sources that users write: one file with the headers it includes, for any architecture that the compiler knows.

use super::{Compiler, Entry, File, KernelResources, Origin, Ptx, Text};
use crate::error::CompileError;

/// A user's source with everything that determines its code.
#[derive(Debug, Clone, Copy)]
pub struct UserSource<'a> {
    /// The file, named as messages name it.
    pub file: File<'a>,
    /// Headers given in memory, named as `#include` names them.
    pub headers: &'a [File<'a>],
    /// Options of the compiler besides the architecture.
    pub options: &'a [String],
    /// The kernel as C++ names it, such as `softmax` or `softmax<128>`.
    pub kernel: &'a str,
}

/// A user's kernel in machine code.
#[derive(Debug, Clone, PartialEq)]
pub struct UserKernel {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The kernel's name in it.
    pub entry: String,
    /// The kernel's resources.
    pub resources: KernelResources,
    /// The compiler's warnings and the assembler's numbered remarks.
    pub warnings: Vec<String>,
    /// Whether it was compiled now or came from the cache.
    pub origin: Origin,
}

/// A user's kernel in PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserPtx {
    /// The text.
    pub text: String,
    /// The kernel's name in it.
    pub entry: String,
}

impl Compiler {
    /// Compiles a user's kernel for an architecture such as `sm_80`, or takes it from the cache. Needs no GPU.
    ///
    /// # Errors
    /// If the source does not compile, has no such kernel, or the compiler does not know the architecture.
    pub fn compile_user(
        &self,
        source: &UserSource<'_>,
        architecture: &str,
    ) -> Result<UserKernel, CompileError> {
        let mut options = vec![
            format!("--gpu-architecture={architecture}"),
            "--ptxas-options=-v".to_owned(),
            "--generate-line-info".to_owned(),
        ];
        options.extend_from_slice(source.options);
        let text = Text {
            file: source.file,
            headers: source.headers,
            options,
            kernel: Some(source.kernel),
        };
        let (Entry { report, cubin }, origin) = self
            .kept(&text, source.file.name, &|name| self.say(name))
            .map_err(|error| without_kernel(error, source))?;
        let found = report
            .entry
            .and_then(|entry| Some((report.resources.get(&entry).copied()?, entry)));
        let (resources, entry) = found.ok_or_else(|| no_kernel(source))?;
        Ok(UserKernel {
            cubin,
            entry,
            resources,
            warnings: report.warnings,
            origin,
        })
    }

    /// Compiles a user's kernel to PTX for a virtual architecture such as `compute_80`. The result is not cached.
    ///
    /// # Errors
    /// As [`compile_user`](Self::compile_user).
    pub fn ptx_of_user(&self, source: &UserSource<'_>, architecture: &str) -> Result<UserPtx, CompileError> {
        let mut options = vec![
            format!("--gpu-architecture={architecture}"),
            "--generate-line-info".to_owned(),
        ];
        options.extend_from_slice(source.options);
        let text = Text {
            file: source.file,
            headers: source.headers,
            options,
            kernel: Some(source.kernel),
        };
        let Ptx { text, entry } = self
            .ptx(&text, source.file.name)
            .map_err(|error| without_kernel(error, source))?;
        Ok(UserPtx {
            text,
            entry: entry.ok_or_else(|| no_kernel(source))?,
        })
    }
}

/// If nothing is wrong but the kernel's name, the compiler complains about a file of its own that holds the name.
fn without_kernel(error: CompileError, source: &UserSource<'_>) -> CompileError {
    match error {
        CompileError::Rejected { place, .. } if place.starts_with("__nv_name_map") => no_kernel(source),
        error => error,
    }
}

fn no_kernel(source: &UserSource<'_>) -> CompileError {
    CompileError::NoKernel {
        file: source.file.name.to_owned(),
        kernel: source.kernel.to_owned(),
    }
}
