//! `gauntlet tune --kernel`: the user's kernel whose parameters are tuned.

use gauntlet_judge::{Candidate, FileKernel, FileKind, KernelForm, KernelText};
use gauntlet_parameters::Parameters;
use gauntlet_task::{OwnParameters, Suite};

use crate::arguments::{MeasuredExecutor, TuneExecutor};
use crate::commands::contest;
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
        let own = gauntlet_entrants::own_parameters(kernel)?
            .filter(|own| !own.table().parameters().is_empty())
            .ok_or_else(|| no_parameters(kernel))?;
        gauntlet_entrants::check_given(kernel)?;
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
