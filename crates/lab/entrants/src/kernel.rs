//! Kernels made into candidates.

use std::path::{Path, PathBuf};

use gauntlet_host_python::{KernelError, Solution, Tensors, VARIABLE, inspect, inspect_module, interpreter};
use gauntlet_judge::{Candidate, FileKernel, FileKind, KernelForm, KernelText, file_meant};
use gauntlet_parameters::{Parameters, Table};
use gauntlet_task::Suite;
use gauntlet_worker::Program;

use crate::error::EntrantError;
use crate::own::check_given;
use crate::parameters::changed_parameters;

/// The place of the kernel among the words that start its worker, after the program, `worker` and the worker's name.
const KERNEL_WORD: usize = 3;

/// A kernel's text, read.
///
/// # Errors
/// If it is no kernel.
pub fn read(text: &str) -> Result<KernelText, EntrantError> {
    Ok(text.parse::<KernelText>()?)
}

/// A kernel as a candidate. Parameters that it does not name are those of `base`; the table defines them.
///
/// # Errors
/// If the kernel is not there.
pub fn candidate(
    name: &str,
    kernel: &KernelText,
    base: &Parameters,
    table: &Table,
    tensors: Tensors,
) -> Result<Candidate, EntrantError> {
    let mut candidate = Candidate::new(name, table.complete(base));
    match kernel.form() {
        KernelForm::BuiltIn | KernelForm::Parameters(_) | KernelForm::ParameterFile(_) => {
            candidate.schedule = table.complete(&changed_parameters(kernel, base, table)?);
        }
        KernelForm::Command(words) => candidate.command = Some(words.iter().map(absolute).collect()),
        KernelForm::Dispatch(file) => {
            let found = gauntlet_families::load_dispatch(file).map_err(|error| {
                EntrantError::wrong(
                    error.to_string(),
                    "name a table that `gauntlet tune --output FILE` has written",
                )
            })?;
            candidate.dispatch = Some(found);
        }
        KernelForm::Solution(file) => {
            let on_gpu = tensors == Tensors::Cuda;
            Solution::read_for(file, on_gpu)
                .map_err(|error| EntrantError::wrong(error.to_string(), error.remedy()))?;
            of_python(&mut candidate, in_full(file), tensors)?;
        }
        KernelForm::Module { module, function } => {
            let whole = inspect_module(module, function).map_err(of_kernel)?;
            of_python(&mut candidate, whole.into(), tensors)?;
        }
        KernelForm::File(kernel) => of_file(&mut candidate, kernel, tensors)?,
    }
    Ok(candidate)
}

/// A function of a file: one of this program's workers calls it.
fn of_file(candidate: &mut Candidate, kernel: &FileKernel, tensors: Tensors) -> Result<(), EntrantError> {
    match kernel.kind {
        FileKind::Python => {
            let given: Vec<&str> = kernel.parameters.iter().map(|(name, _)| name).collect();
            let whole = inspect(&kernel.file, &kernel.function, &given).map_err(of_kernel)?;
            check_given(kernel)?;
            of_python(candidate, whole.into(), tensors)?;
            give(candidate, kernel.kind, &kernel.parameters);
            Ok(())
        }
        FileKind::Library | FileKind::C => {
            hosted(candidate, "library", existing(kernel)?, &[])?;
            check_given(kernel)?;
            give(candidate, kernel.kind, &kernel.parameters);
            Ok(())
        }
        FileKind::Cuda if tensors != Tensors::Cuda => Err(EntrantError::wrong(
            format!(
                "`{}:{}` is a CUDA kernel, and the cpu executor measures on the CPU",
                kernel.file.display(),
                kernel.function
            ),
            "leave out --executor cpu; without a GPU, `gauntlet check` compiles and interprets the kernel",
        )),
        FileKind::Cuda => {
            hosted(candidate, "nvrtc", existing(kernel)?, &[])?;
            check_given(kernel)?;
            candidate.device_only = true;
            give(candidate, kernel.kind, &kernel.parameters);
            Ok(())
        }
    }
}

/// A candidate whose kernel was named without parameters, with values of them.
pub fn with_parameters(candidate: &Candidate, kind: FileKind, parameters: &Parameters) -> Candidate {
    let mut given = candidate.clone();
    give(&mut given, kind, parameters);
    given
}

/// Gives a kernel values of its own parameters. Workers of CUDA C++ are told them with each case, others when they
/// start: names of the task's built-in parameters, which every worker is told, may be theirs too.
fn give(candidate: &mut Candidate, kind: FileKind, parameters: &Parameters) {
    candidate.schedule = parameters.clone();
    let word = candidate
        .command
        .as_mut()
        .and_then(|words| words.get_mut(KERNEL_WORD));
    if let Some(kernel) = word.filter(|_| kind != FileKind::Cuda && !parameters.is_empty()) {
        kernel.as_mut_os_string().push(format!(": {parameters}"));
    }
}

/// A Python kernel, whose workers need not look for the interpreter again.
fn of_python(candidate: &mut Candidate, kernel: PathBuf, tensors: Tensors) -> Result<(), EntrantError> {
    gauntlet_worker::give_to_workers(VARIABLE, interpreter());
    hosted(candidate, "python", kernel, &opening(tensors))
}

/// Lets one of this program's workers serve the candidate.
fn hosted(
    candidate: &mut Candidate,
    worker: &str,
    kernel: PathBuf,
    more: &[PathBuf],
) -> Result<(), EntrantError> {
    let mut command = Program::this()
        .map_err(|error| EntrantError::Machine(format!("this program's own file cannot be found: {error}")))?
        .words(["worker", worker]);
    command.push(kernel);
    command.extend_from_slice(more);
    candidate.command = Some(command);
    candidate.hosted = true;
    candidate.schedule = Parameters::new();
    Ok(())
}

/// The solution that a text names, if it names one.
///
/// # Errors
/// If it names a file that is no solution.
fn solution(kernel: &KernelText) -> Result<Option<Solution>, EntrantError> {
    let KernelForm::Solution(file) = kernel.form() else {
        return Ok(None);
    };
    Solution::read(file)
        .map(Some)
        .map_err(|error| EntrantError::wrong(error.to_string(), error.remedy()))
}

/// The arguments that tell a Python worker which libraries it imports at its start; none for numpy.
fn opening(tensors: Tensors) -> Vec<PathBuf> {
    let name = match tensors {
        Tensors::Cpu => return Vec::new(),
        Tensors::Torch => "torch",
        Tensors::Cuda => "cuda",
    };
    vec!["--tensors".into(), name.into()]
}

/// The kernel with the absolute path of its file, because a worker runs in its own folder.
///
/// # Errors
/// If there is no such file.
pub fn existing(kernel: &FileKernel) -> Result<PathBuf, EntrantError> {
    let path = in_full(&kernel.file);
    if path.is_file() {
        return Ok(format!("{}:{}", path.display(), kernel.function).into());
    }
    Err(EntrantError::wrong(
        format!("there is no file {}", kernel.file.display()),
        format!(
            "write a kernel as FILE:FUNCTION, such as softmax.cu:softmax_kernel{}",
            file_meant(&kernel.file)
        ),
    ))
}

fn of_kernel(error: KernelError) -> EntrantError {
    EntrantError::wrong(
        error.to_string(),
        match &error {
            KernelError::NoFile { file } => error.remedy() + &file_meant(file),
            // A file whose ending is misspelt looks like a module.
            KernelError::NoModule { module, .. } => error.remedy() + &file_meant(Path::new(module)),
            _ => error.remedy(),
        },
    )
}

/// A path that a worker finds too, which runs in its own folder.
fn in_full(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// A word of a command; the path of an existing file in full.
fn absolute(word: &String) -> PathBuf {
    let path = Path::new(word);
    if path.exists() {
        in_full(path)
    } else {
        path.to_owned()
    }
}

/// What to say where no task is named for a kernel of the user's.
pub fn no_task(kernel: &KernelText) -> EntrantError {
    EntrantError::wrong(
        format!("{kernel}: no task says what this kernel computes"),
        "name a task with --task: a file of yours (docs/guide/tasks.md), or a suite that `gauntlet suites` lists",
    )
}

/// What of solutions among the kernels is not honoured. A solution names the definition that it solves, which must be
/// the task.
///
/// # Errors
/// If one of them solves another definition, or is no solution.
pub fn notes_of_solutions(suite: &Suite, texts: &[&KernelText]) -> Result<Vec<String>, EntrantError> {
    let mut notes = Vec::new();
    for text in texts {
        let Some(solution) = solution(text)? else {
            continue;
        };
        if solution.definition != suite.name {
            return Err(EntrantError::wrong(
                format!(
                    "{text} solves the definition `{}`, and the task is `{}`",
                    solution.definition, suite.name
                ),
                "name the folder or the file of its definition with --task",
            ));
        }
        notes.extend(solution.notes());
    }
    notes.dedup();
    Ok(notes)
}
