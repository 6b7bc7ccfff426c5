//! The parameters of a user's kernel, as the table beside its source declares them.

use std::fmt::Display;
use std::fs;

use gauntlet_host_library::FunctionTable;
use gauntlet_host_nvrtc::KernelFile;
use gauntlet_judge::{FileKernel, FileKind};
use gauntlet_task::{OwnParameters, OwnTable, table_entry};

use crate::error::EntrantError;
use crate::kernel::existing;

/// The parameters that the table beside a kernel's source declares; none of a function in Python without an entry there, which
/// may have parameters all the same.
///
/// # Errors
/// If there is no such file, or its table is malformed.
pub fn own_parameters(kernel: &FileKernel) -> Result<Option<OwnParameters>, EntrantError> {
    existing(kernel)?;
    match kernel.kind {
        FileKind::Cuda => Ok(Some(kernel_file(kernel)?.parameters().clone())),
        FileKind::C | FileKind::Library => FunctionTable::beside(&kernel.file, &kernel.function)
            .and_then(|table| table.own_parameters(&kernel.file, &kernel.function))
            .map(Some)
            .map_err(|error| wrong(&error)),
        FileKind::Python => of_python(kernel),
    }
}

/// A CUDA C++ kernel with its launch table.
///
/// # Errors
/// If there is no such file, or its table is malformed.
pub fn kernel_file(kernel: &FileKernel) -> Result<KernelFile, EntrantError> {
    existing(kernel)?;
    KernelFile::open(&kernel.file, &kernel.function).map_err(|error| {
        EntrantError::wrong(
            error.to_string(),
            "docs/guide/compiled-kernels.md describes kernels and their launch tables",
        )
    })
}

/// Holds the values that a kernel is given against the table beside its source.
///
/// # Errors
/// If the table is malformed, or there is no such parameter or value. Whoever named the kernel made the slip, and its worker
/// would count it against the kernel.
pub fn check_given(kernel: &FileKernel) -> Result<(), EntrantError> {
    if kernel.parameters.is_empty() {
        return Ok(());
    }
    let Some(own) = own_parameters(kernel)? else {
        return Ok(());
    };
    let checked = own.table().check(&kernel.parameters);
    checked.map_err(|error| {
        EntrantError::wrong(
            format!("{}:{}: {error}", kernel.file.display(), kernel.function),
            format!(
                "the table {} says what there is",
                kernel.file.with_extension("toml").display()
            ),
        )
    })
}

fn of_python(kernel: &FileKernel) -> Result<Option<OwnParameters>, EntrantError> {
    let path = kernel.file.with_extension("toml");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(None);
    };
    let told = |message: &str| wrong(&format!("{}: {}", path.display(), message.trim_end()));
    let entry = table_entry::<OwnTable>(&text, &kernel.function);
    let Some(table) = entry.map_err(|error| told(&error.to_string()))? else {
        return Ok(None);
    };
    let owner = format!("{}:{}", kernel.file.display(), kernel.function);
    OwnParameters::new(&owner, &table.parameters, &table.restrictions)
        .map(Some)
        .map_err(|(name, message)| told(&format!("{}.parameters.{name}: {message}", kernel.function)))
}

fn wrong(error: &dyn Display) -> EntrantError {
    EntrantError::wrong(
        error.to_string(),
        "docs/guide/tuning.md describes the parameters of kernels",
    )
}
