//! Checks of users' kernels, and CUDA C++ kernels with their tables.

use std::ffi::OsString;

use gauntlet_cuda::compiler::CACHE_VARIABLE;
use gauntlet_device::{Arch, Device};
use gauntlet_judge::{FileKernel, FileKind, KernelForm, KernelText, Sweep, SweepReport, sweep};
use gauntlet_parameters::{Parameters, pairwise};
use gauntlet_task::{Case, Rules, Suite};
use gauntlet_worker::WorkerCommand;

use crate::arguments::{Check, MeasuredExecutor};
use crate::commands::run::this_program;
use crate::commands::{contest, cuda, devices};
use crate::environment::timeouts;
use crate::error::{CliError, say_line};
use crate::progress::Progress;

/// Examines a kernel of the user's without measuring: a Python function, a solution, a shared library or a worker on this machine, a
/// CUDA kernel in the PTX interpreter.
pub fn check(target: &KernelText, arguments: &Check) -> Result<SweepReport, CliError> {
    let Some(task) = arguments.task.as_deref() else {
        return Err(gauntlet_entrants::no_task(target).into());
    };
    let suite = gauntlet_entrants::find_task(task)?;
    for note in gauntlet_entrants::notes_of_solutions(&suite, &[target])? {
        say_line(format_args!("note: {note}"));
    }
    match target.in_file(FileKind::Cuda) {
        Some(kernel) => interpreted(kernel, suite, arguments),
        None => hosted(target, &suite, arguments),
    }
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

/// A Python function, a solution, a shared library or a worker.
fn hosted(target: &KernelText, suite: &Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    let (label, what) = match target.form() {
        KernelForm::Command(_) => ("worker", "a worker"),
        KernelForm::File(kernel) if kernel.kind == FileKind::Library => ("library", "a shared library"),
        KernelForm::File(kernel) if kernel.kind == FileKind::C => ("library", "a function in C"),
        _ => ("Python", "a Python function"),
    };
    takes_no_options(what, arguments)?;
    let tensors = gauntlet_entrants::tensors_of(suite, contest::home(suite) == MeasuredExecutor::Cuda);
    let none = Parameters::new();
    let kernel = gauntlet_entrants::candidate("kernel", target, &none, &suite.parameters(), tensors)?;
    let words = kernel.command.unwrap_or_default();
    let Some((program, rest)) = words.split_first() else {
        return Err(CliError::broken(format!("{target} has no worker")));
    };
    let command = WorkerCommand::new(
        program.clone(),
        rest.iter().map(OsString::from).collect::<Vec<_>>(),
    );
    swept(suite, label, command, &|_| vec![Parameters::new()])
}

fn interpreted(kernel: &FileKernel, mut suite: Suite, arguments: &Check) -> Result<SweepReport, CliError> {
    let file = gauntlet_entrants::kernel_file(kernel)?;
    let device = gpu(arguments.device.as_deref())?;
    let given = arguments
        .schedule
        .as_deref()
        .map(|text| gauntlet_entrants::read_parameters(text, &Parameters::new(), file.parameters().table()))
        .transpose()?;
    let own = file.parameters();
    let space = own.space();
    let schedules = |case: &Case| match &given {
        Some(parameters) => vec![parameters.clone()],
        None => pairwise(&space, |point| own.accepts(&case.sizes, point)),
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
        kernel.function
    ));
    let command = nvrtc_worker(kernel, &["--compile-for", &architecture])?;
    swept(
        &suite,
        &format!("interpreted, {architecture}"),
        command,
        &schedules,
    )
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

/// This program as the worker of a CUDA C++ kernel, with the compiler's cache.
pub fn nvrtc_worker(kernel: &FileKernel, more: &[&str]) -> Result<WorkerCommand, CliError> {
    let mut words: Vec<OsString> = vec![
        "worker".into(),
        "nvrtc".into(),
        gauntlet_entrants::existing(kernel)?.into(),
    ];
    words.extend(more.iter().map(OsString::from));
    Ok(cuda::with_caches(this_program()?.worker(words), CACHE_VARIABLE))
}
