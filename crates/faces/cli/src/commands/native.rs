//! Kernels in files on the command line: `FILE.cu:KERNEL`, `FILE.so:FUNCTION`, and checks of these and of Python functions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gauntlet_cuda::compiler::CACHE_VARIABLE;
use gauntlet_device::{Arch, Device};
use gauntlet_host_nvrtc::KernelFile;
use gauntlet_judge::{Sweep, SweepReport, sweep};
use gauntlet_parameters::{Parameters, pairwise};
use gauntlet_task::{Case, Rules, Scope, Sizes, Suite};
use gauntlet_worker::WorkerCommand;

use crate::arguments::Check;
use crate::commands::run::this_program;
use crate::commands::{contest, cuda, devices, suites};
use crate::environment::timeouts;
use crate::error::{CliError, say_line};
use crate::kernel_text;
use crate::progress::Progress;
use crate::schedule_text;

/// The kinds of compiled kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiled {
    /// A function of a shared library.
    Library,
    /// A CUDA C++ kernel.
    Cuda,
}

/// A compiled kernel, named by its file and its name in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What kind of file it is.
    pub compiled: Compiled,
    /// The file.
    pub file: PathBuf,
    /// The kernel's name in the file.
    pub kernel: String,
}

impl Subject {
    /// The kernel that a text names, if it names a compiled one.
    pub fn of(text: &str) -> Option<Self> {
        let folder = text.rfind('/').map_or(0, |at| at + 1);
        let (file, kernel) = text[folder..].split_once(':')?;
        let compiled = if file.ends_with(".cu") {
            Compiled::Cuda
        } else if file.ends_with(".so") || file.contains(".so.") || file.ends_with(".dylib") {
            Compiled::Library
        } else {
            return None;
        };
        let kernel = kernel.trim();
        let is_name = !kernel.is_empty() && !kernel.contains(char::is_whitespace);
        is_name.then(|| Self {
            compiled,
            file: PathBuf::from(format!("{}{file}", &text[..folder])),
            kernel: kernel.to_owned(),
        })
    }

    /// The kernel that a text names, which must be of this kind.
    ///
    /// # Errors
    /// If it names none.
    pub fn read(text: &str, of: Compiled) -> Result<Self, CliError> {
        let (what, example) = match of {
            Compiled::Library => ("a function of a shared library", "./libsoftmax.so:softmax"),
            Compiled::Cuda => ("a kernel of a CUDA C++ file", "softmax.cu:softmax_kernel"),
        };
        Self::of(text)
            .filter(|found| found.compiled == of)
            .ok_or_else(|| {
                CliError::bad_input(
                    format!("`{text}` does not name {what}"),
                    format!("write the file, a colon and the name, as in {example}"),
                )
            })
    }
}

/// Examines a kernel of the user's without measuring: a Python function, a solution, a shared library or a worker on this machine, a
/// CUDA kernel in the PTX interpreter. None if the target names no such kernel.
pub fn check(target: &str, arguments: &Check) -> Result<Option<SweepReport>, CliError> {
    let subject = Subject::of(target);
    if subject.is_none() && !kernel_text::is_users(target) {
        return Ok(None);
    }
    let Some(task) = arguments.task.as_deref() else {
        return Err(kernel_text::no_task(target));
    };
    let suite = suites::find(task)?;
    for note in contest::of_solutions(&suite, &[target])? {
        say_line(format_args!("note: {note}"));
    }
    let checked = match subject {
        None => hosted(target, &suite, arguments),
        Some(subject) if subject.compiled == Compiled::Library => library(&subject, &suite, arguments),
        Some(_) => kernel(target, suite, arguments),
    };
    checked.map(Some)
}

/// Refuses options that mean nothing for a kernel which is called as it is, on this machine.
fn takes_no_options(what: &str, arguments: &Check) -> Result<(), CliError> {
    if arguments.schedule.is_none() && arguments.device.is_none() && arguments.simd.is_none() {
        return Ok(());
    }
    Err(CliError::bad_input(
        format!("--schedule, --device and --simd say nothing about {what}"),
        format!("leave them out; {what} is called as it is, on this machine"),
    ))
}

/// A Python function, a solution or a worker.
fn hosted(target: &str, suite: &Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    let is_worker = kernel_text::is_worker(target);
    let what = if is_worker {
        "a worker"
    } else {
        "a Python function"
    };
    takes_no_options(what, arguments)?;
    let tensors = contest::tensors(suite, contest::home(suite));
    let none = Parameters::new();
    let kernel = kernel_text::candidate("kernel", target, &none, &suite.parameters(), tensors)?;
    let words = kernel.command.unwrap_or_default();
    let Some((program, rest)) = words.split_first() else {
        return Err(CliError::broken(format!("{target} has no worker")));
    };
    let command = WorkerCommand::new(
        program.clone(),
        rest.iter().map(OsString::from).collect::<Vec<_>>(),
    );
    let label = if is_worker { "worker" } else { "Python" };
    swept(suite, label, command, &|_| vec![Parameters::new()])
}

fn library(subject: &Subject, suite: &Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    takes_no_options("a shared library", arguments)?;
    let file = subject.file.canonicalize().map_err(|error| {
        CliError::bad_input(
            format!("{} cannot be read: {error}", subject.file.display()),
            "check the path",
        )
    })?;
    let command = worker("library", &file, &subject.kernel, &[])?;
    swept(suite, "library", command, &|_| vec![Parameters::new()])
}

fn kernel(target: &str, mut suite: Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    let (subject, file) = kernel_file(target)?;
    let device = gpu(arguments.device.as_deref())?;
    let given = arguments
        .schedule
        .as_deref()
        .map(|text| schedule_text::read(text, &Parameters::new(), file.parameters()))
        .transpose()?;
    let space = file.space();
    let schedules = |case: &Case| match &given {
        Some(parameters) => vec![parameters.clone()],
        None => pairwise(&space, |point| accepts(&file, &case.sizes, point)),
    };
    // Timed cases are too large for an interpreter.
    suite.benchmark.clear();
    if suite.correctness.is_empty() {
        return Err(CliError::bad_input(
            format!(
                "{} has timed cases only, and those are not interpreted",
                suite.name
            ),
            "add small correctness cases (in a task in Python: cases = {\"correctness\": […], \"benchmark\": […]}), or compare on a GPU",
        ));
    }
    let architecture = device.arch.to_string();
    say_line(format_args!(
        "note: {} is compiled for {architecture} and runs in the PTX interpreter, not on a GPU: small cases only, no times",
        subject.kernel
    ));
    let command = worker(
        "nvrtc",
        &subject.file,
        &subject.kernel,
        &["--compile-for", &architecture],
    )?;
    swept(
        &suite,
        &format!("interpreted, {architecture}"),
        command,
        &schedules,
    )
}

/// A CUDA C++ kernel with its table.
pub fn kernel_file(text: &str) -> Result<(Subject, KernelFile), CliError> {
    let mut subject = Subject::read(text, Compiled::Cuda)?;
    let opened = subject
        .file
        .canonicalize()
        .map_err(|error| format!("{} cannot be read: {error}", subject.file.display()))
        .and_then(|path| {
            subject.file = path;
            KernelFile::open(&subject.file, &subject.kernel).map_err(|error| error.to_string())
        });
    match opened {
        Ok(file) => Ok((subject, file)),
        Err(error) => Err(CliError::bad_input(
            error,
            "docs/guide/compiled-kernels.md describes kernels and their launch tables",
        )),
    }
}

/// The values of a kernel's parameters that its restrictions allow for a case.
pub fn points(file: &KernelFile, sizes: &Sizes) -> Vec<Parameters> {
    let space = file.space();
    space
        .combinations()
        .filter(|point| accepts(file, sizes, point))
        .collect()
}

fn accepts(file: &KernelFile, sizes: &Sizes, parameters: &Parameters) -> bool {
    let scope = file.scope(
        Scope::of(&sizes.record(), &sizes.inputs(), &sizes.outputs()),
        parameters,
    );
    scope.is_ok_and(|scope| matches!(file.broken_restriction(&scope), Ok(None)))
}

fn gpu(name: Option<&str>) -> Result<Device, CliError> {
    let device = devices::find(name.unwrap_or("h100"))?;
    if device.arch == Arch::Cpu {
        return Err(CliError::bad_input(
            format!("{} is no GPU, and a CUDA kernel is compiled for one", device.name),
            "name a GPU with --device; `gauntlet devices` lists them",
        ));
    }
    Ok(device)
}

fn swept(
    suite: &Suite,
    label: &str,
    command: WorkerCommand,
    schedules: &dyn Fn(&Case) -> Vec<Parameters>,
) -> Result<SweepReport, CliError> {
    let plan = Sweep {
        suite,
        workers: vec![(label.to_owned(), command)],
        schedules,
        rules: Rules::default(),
        timeouts: timeouts()?,
    };
    let progress = Progress::new();
    let report = sweep(&plan, &|message| progress.show(message))?;
    if report.compared + report.refused + report.failed + report.blocked == 0 {
        return Err(CliError::bad_input(
            format!(
                "no case of {} is allowed by the kernel's restrictions",
                suite.name
            ),
            "check the restrictions in the launch table and the sizes of the cases",
        ));
    }
    Ok(report)
}

/// This program as the worker of a compiled kernel, with the compiler's cache.
pub fn worker(name: &str, file: &Path, kernel: &str, more: &[&str]) -> Result<WorkerCommand, CliError> {
    let subject = format!("{}:{kernel}", file.display());
    let arguments = ["worker", name, &subject].into_iter().chain(more.iter().copied());
    Ok(cuda::with_caches(
        this_program()?.worker(arguments),
        CACHE_VARIABLE,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_named_by_file_and_name() {
        let subject =
            |text| Subject::of(text).map(|one| (one.compiled, one.file.display().to_string(), one.kernel));
        let found = |compiled, file: &str, kernel: &str| Some((compiled, file.to_owned(), kernel.to_owned()));
        assert_eq!(
            subject("a/softmax.cu:warp"),
            found(Compiled::Cuda, "a/softmax.cu", "warp")
        );
        assert_eq!(
            subject("x.cu:ns::warp"),
            found(Compiled::Cuda, "x.cu", "ns::warp")
        );
        assert_eq!(
            subject("./lib.so.1:f"),
            found(Compiled::Library, "./lib.so.1", "f")
        );
        assert_eq!(subject("C:/x.so:f"), found(Compiled::Library, "C:/x.so", "f"));
        for other in ["x.cu", "x.py:f", "x.cu:", "command: ./x.so", "gemm: tile=1"] {
            assert_eq!(subject(other), None, "{other}");
        }
        let error = Subject::read("softmax.cu", Compiled::Cuda)
            .unwrap_err()
            .to_string();
        assert!(error.contains("`softmax.cu` does not name a kernel"), "{error}");
    }
}
