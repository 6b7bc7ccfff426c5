//! `gauntlet tune --kernel`: the user's kernel whose parameters are tuned.

use gauntlet_host_library::FunctionTable;
use gauntlet_judge::{Candidate, FileKernel, FileKind, KernelForm, KernelText};
use gauntlet_parameters::Parameters;
use gauntlet_task::{OwnParameters, OwnTable, Suite, table_entry};

use crate::arguments::{MeasuredExecutor, TuneExecutor};
use crate::commands::{contest, native};
use crate::error::CliError;

/// A kernel of the user's with its own parameters.
pub struct TunedKernel {
    /// The kernel as it was named.
    pub text: KernelText,
    /// The parameters that the table beside its source declares.
    pub own: OwnParameters,
    /// Values that were named with the kernel.
    pub given: Parameters,
    kind: FileKind,
    /// The kernel with its defaults.
    candidate: Candidate,
}

impl TunedKernel {
    /// Reads a kernel and the table beside its source.
    ///
    /// # Errors
    /// If it has no parameters, or the executor does not run it.
    pub fn open(text: &str, suite: &Suite, executor: TuneExecutor) -> Result<Self, CliError> {
        let text = gauntlet_entrants::read(text)?;
        let kernel = source(&text)?;
        check_executor(kernel.kind, suite, executor)?;
        let own = own_parameters(kernel)?;
        if own.table().parameters().is_empty() {
            return Err(no_parameters(kernel));
        }
        own.table().check(&kernel.parameters).map_err(|error| {
            CliError::bad_input(
                format!("{text}: {error}"),
                format!("the table {} says what there is", table_of(kernel)),
            )
        })?;
        let tensors = gauntlet_entrants::tensors_of(suite, executor == TuneExecutor::Cuda);
        let plain = FileKernel {
            parameters: Parameters::new(),
            ..kernel.clone()
        };
        let named = gauntlet_entrants::read(&format!("{}:{}", plain.file.display(), plain.function))?;
        let none = Parameters::new();
        let candidate = gauntlet_entrants::candidate("kernel", &named, &none, &suite.parameters(), tensors)?;
        Ok(Self {
            own,
            kind: kernel.kind,
            given: kernel.parameters.clone(),
            candidate,
            text,
        })
    }

    /// The kernel with these values of its parameters.
    pub fn at(&self, point: &Parameters) -> Candidate {
        gauntlet_entrants::with_parameters(&self.candidate, self.kind, point)
    }
}

/// The source that a text names.
fn source(text: &KernelText) -> Result<&FileKernel, CliError> {
    match text.form() {
        KernelForm::File(kernel) if kernel.kind != FileKind::Library => Ok(kernel),
        _ => Err(CliError::bad_input(
            format!("`{text}` names no source whose parameters could vary"),
            "write FILE.cu:KERNEL, FILE.c:FUNCTION or FILE.py:FUNCTION",
        )),
    }
}

/// Refuses an executor that does not run the kernel on the task's tensors.
fn check_executor(kind: FileKind, suite: &Suite, executor: TuneExecutor) -> Result<(), CliError> {
    let on_gpu = kind == FileKind::Cuda || contest::home(suite) == MeasuredExecutor::Cuda;
    match (on_gpu, executor) {
        (true, TuneExecutor::Cpu | TuneExecutor::Model) => Err(CliError::bad_input(
            "--kernel names a kernel that runs on a GPU, and only the cuda executor runs one there",
            "add --executor cuda and --device with the GPU that is here",
        )),
        (false, TuneExecutor::Cuda | TuneExecutor::Model) => Err(CliError::bad_input(
            "--kernel names a kernel whose task is on the CPU, where only the cpu executor measures",
            "leave out --executor",
        )),
        (true, TuneExecutor::Cuda) | (false, TuneExecutor::Cpu) => Ok(()),
    }
}

/// The parameters that the table beside a source declares.
fn own_parameters(kernel: &FileKernel) -> Result<OwnParameters, CliError> {
    gauntlet_entrants::existing(kernel)?;
    match kernel.kind {
        FileKind::Cuda => Ok(native::kernel_file(kernel)?.parameters().clone()),
        FileKind::C | FileKind::Library => FunctionTable::beside(&kernel.file, &kernel.function)
            .and_then(|table| table.own_parameters(&kernel.file, &kernel.function))
            .map_err(|error| wrong(&error)),
        FileKind::Python => of_python(kernel),
    }
}

fn of_python(kernel: &FileKernel) -> Result<OwnParameters, CliError> {
    let path = kernel.file.with_extension("toml");
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Err(no_parameters(kernel));
    };
    let told = |message: &dyn std::fmt::Display| wrong(&format!("{}: {message}", path.display()));
    let table: OwnTable = table_entry(&text, &kernel.function)
        .map_err(|error| told(&error.to_string().trim_end()))?
        .unwrap_or_default();
    let owner = format!("{}:{}", kernel.file.display(), kernel.function);
    OwnParameters::new(&owner, &table.parameters, &table.restrictions)
        .map_err(|(name, message)| told(&format!("{}.parameters.{name}: {message}", kernel.function)))
}

fn wrong(error: &dyn std::fmt::Display) -> CliError {
    CliError::bad_input(
        error.to_string(),
        "docs/guide/tuning.md describes the parameters of kernels",
    )
}

fn no_parameters(kernel: &FileKernel) -> CliError {
    CliError::bad_input(
        format!(
            "{}:{} has no parameters to tune",
            kernel.file.display(),
            kernel.function
        ),
        format!(
            "declare them in {}, as in\n[{}.parameters]\nBLOCK = [64, 128, 256]",
            table_of(kernel),
            kernel.function
        ),
    )
}

/// The name of the table beside a source.
fn table_of(kernel: &FileKernel) -> String {
    kernel.file.with_extension("toml").display().to_string()
}
